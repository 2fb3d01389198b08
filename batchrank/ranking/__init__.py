"""One job's identity, one query's windows: asked, read, counted, replayed."""
