"""Model servers that listen on their own nodes alone, reached through a worker on each node.

`relay` is what works there, `transport` takes its requests here, `cluster` knows Ray: nothing else
in the program does, nor does it matter to anything else how the bytes travel.
"""
