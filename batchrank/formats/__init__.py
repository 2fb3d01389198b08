"""Streams each format in and out: raw lines, requests, rows and the file they are written to."""
