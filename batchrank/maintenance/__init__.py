"""Stores as files to look after: joined, emptied of what no run uses."""
