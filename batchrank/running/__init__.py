"""A run from input to verdict."""
