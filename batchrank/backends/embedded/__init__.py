"""Models that batchrank loads itself, each in a server of its own on this machine.

`server` starts and ends such a server, `runtimes` knows which program serves which files,
`identity` hashes them, and `transport` keeps a server running and carries requests to it.
"""
