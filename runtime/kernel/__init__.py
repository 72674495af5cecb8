"""Kernel of all peers: engine contract, host, simulator, log, status and durable store.

The page docs/explanation/architecture.md explains it, with the ZRE peer as the example.
"""
