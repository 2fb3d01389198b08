"""How far a run is: counts and rates, the snapshot that every view is drawn from, its file."""
