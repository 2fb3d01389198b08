"""Talks to model servers: a prompt to request bytes, a server's bytes to an answer or an error."""
