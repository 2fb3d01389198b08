"""Measures of rankings and of their differences; pure."""
