"""Kernel of all peers: engine contract, host, simulator, log, status and durable store.

The page docs/how-to/new-peer.md writes a peer with it, and lists events, effects and rules for
stories.
"""
