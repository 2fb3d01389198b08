"""The SQLite store: raw answers, rankings, runs; one connection, one writer, group commits."""
