"""A job's settings: checked, named like the flags, and what they mean for its identity."""
