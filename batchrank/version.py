"""The version, by itself so that all may know it."""

__version__ = "0.1.0"
