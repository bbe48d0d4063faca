"""The policies that the core ships."""
