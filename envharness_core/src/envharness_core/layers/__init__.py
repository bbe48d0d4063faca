"""The layers that the core ships."""
