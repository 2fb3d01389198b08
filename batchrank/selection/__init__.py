"""What a model gets to see, and what becomes of its order afterwards."""
