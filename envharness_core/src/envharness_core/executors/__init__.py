"""The executors that the core ships."""
