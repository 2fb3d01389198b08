"""Clients of other rerankers, each run by a Python of its own that has it; see bench_peers.py."""
