"""What runs in the engine's own process: upstream itself, and the same games several times faster."""
