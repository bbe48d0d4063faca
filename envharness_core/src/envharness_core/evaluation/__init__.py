"""Evaluation: whether skills help on the untouched benchmark."""
