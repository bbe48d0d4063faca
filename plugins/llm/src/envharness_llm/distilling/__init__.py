"""Distilling: what a model is shown of rollouts to make skills of them, and how its answers are read."""
