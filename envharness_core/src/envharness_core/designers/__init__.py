"""The designers that the core ships."""
