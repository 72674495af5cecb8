"""FILEMQ peers: a server that publishes folders, and a client that keeps an inbox equal to them.

`FilemqServer` and `FilemqClient` are asyncio services. The rules of the protocol are in `server`, `peering` and
`outflow` (the server's engine) and `client`, `subscribing` and `incoming` (the client's), none of which sees a
socket, a file, a thread or the clock; `publication` and `inbox` are the two kinds of folder.
"""

from specwire.runtime.filemq.inbox import InboxError
from specwire.runtime.filemq.publication import Publication
from specwire.runtime.filemq.serve import FilemqServer
from specwire.runtime.filemq.subscribe import FilemqClient

__all__ = ["FilemqClient", "FilemqServer", "InboxError", "Publication"]
