"""The whole night around a run: how it is set up, scheduled, and what comes after ranking."""
