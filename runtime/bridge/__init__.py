"""Bridges between peers that speak two dialects of one protocol.

A bridge stands between two connections (`specwire.runtime.transport.relay`). The handshake of ZMTP passes as it is, so
each side sees the other's socket and identity; messages are decoded by one dialect's package and encoded by the other's.
"""
