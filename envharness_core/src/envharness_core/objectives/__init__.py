"""The objectives that the core ships."""
