"""What a run will take, and whether its servers are fit: told before it begins."""
