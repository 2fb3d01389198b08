"""A run from input to verdict, and what is told of it while it lasts."""
