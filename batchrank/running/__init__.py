"""A run from input to verdict, and what is told before, during and after it."""
