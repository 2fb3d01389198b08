"""What a run holds, read back from its store: rows and their texts, windows, causes of failures."""
