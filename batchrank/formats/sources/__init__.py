"""Reads each format that queries come in as a stream of JSONL lines, one module a format."""
