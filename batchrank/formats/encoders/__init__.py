"""Writes requests and results in each format, one module a family of formats."""
