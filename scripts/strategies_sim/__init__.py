"""Simulates strategies in process: judged queries, a noisy judge, what each strategy costs."""
