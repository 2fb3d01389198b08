"""Live views of a run for others than its terminal: a page, metrics."""
