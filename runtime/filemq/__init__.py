"""FILEMQ peers: a server that publishes folders, and a client that keeps an inbox equal to them.

`FilemqServer` and `FilemqClient` are asyncio services. The rules of the protocol are in `server`,
`peering` and `outflow` (the server's engine), and in `client`, `connection`, `resync` and
`incoming` (the client's). The engines have no socket, file, thread or clock. `publication` and
`inbox` are the folders.
"""

from specwire.runtime.filemq.inbox import InboxError
from specwire.runtime.filemq.publication import Publication
from specwire.runtime.filemq.publisher import FilemqServer
from specwire.runtime.filemq.subscriber import FilemqClient

__all__ = ["FilemqClient", "FilemqServer", "InboxError", "Publication"]
