"""Toy24, the game of 24: the embedded benchmark."""
