"""Flux: brokers in a tree, and clients that talk to them.

`BrokerEngine` is one broker: messages in, actions out. It sees no socket, file, thread or clock; the shells
around it do.

`FluxBroker` runs one on asyncio. `connect` (asyncio) and `open` (plain programs) give a connection to a broker;
`allow` marks the methods of a service that guests may call. These names are imported when they are first asked for,
so that an engine comes without asyncio.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from specwire.runtime.flux.blocking import BlockingEvents, BlockingHandle, open
    from specwire.runtime.flux.errors import FluxError
    from specwire.runtime.flux.handle import Events, FluxHandle, connect
    from specwire.runtime.flux.serve import FluxBroker
    from specwire.runtime.flux.service import ServiceHost, allow
    from specwire.runtime.flux.views import Notice, Reply, ServiceRequest

__all__ = [
    "BlockingEvents",
    "BlockingHandle",
    "Events",
    "FluxBroker",
    "FluxError",
    "FluxHandle",
    "Notice",
    "Reply",
    "ServiceHost",
    "ServiceRequest",
    "allow",
    "connect",
    "open",
]

_HOMES = {
    "BlockingEvents": "blocking",
    "BlockingHandle": "blocking",
    "Events": "handle",
    "FluxBroker": "serve",
    "FluxError": "errors",
    "FluxHandle": "handle",
    "Notice": "views",
    "Reply": "views",
    "ServiceHost": "service",
    "ServiceRequest": "views",
    "allow": "service",
    "connect": "handle",
    "open": "blocking",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first asked for."""
    if home := _HOMES.get(name):
        return getattr(import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
