"""Sockets: the only package of the runtime that imports zmq.

`link` puts a ZeroMQ socket on an asyncio loop, `router` and `dealer` are the two kinds that the peers use,
`context` owns the I/O threads. What leaves this package are lists of octets and callbacks, never a zmq type.
"""
