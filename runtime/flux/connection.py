"""What a client may ask of its own connection: subscriptions to events, and services of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from specwire.generated.flux import Request, Response
from specwire.runtime.flux.answering import pack_text, unpack
from specwire.runtime.flux.credentials import OWNER, ROUTER
from specwire.runtime.flux.errors import EEXIST, EINVAL, ENOENT, ENOSPC, EPERM, EPROTO, FluxError
from specwire.runtime.flux.flags import NORESPONSE

if TYPE_CHECKING:
    from specwire.runtime.flux.broker import BrokerEngine
    from specwire.runtime.flux.clients import Client

MAX_SUBSCRIPTIONS = 1024
"""Prefixes of one client: each event is compared with each of them."""
MAX_SERVICES = 1024
"""Services of one client."""
MAX_NAME_LENGTH = 255
"""Of a prefix or a service."""


class Topic(msgspec.Struct):
    """The payload of ``event.subscribe`` and ``event.unsubscribe``."""

    topic: str


class ServiceName(msgspec.Struct):
    """The payload of ``service.add`` and ``service.remove``."""

    service: str


def carry_out(broker: BrokerEngine, client: Client, request: Request, method: Method) -> None:
    """Carry out a request and answer it, in the name of the connector."""
    errnum, payload = 0, None
    try:
        method(broker, client, request)
    except FluxError as error:
        errnum, payload = error.errnum, pack_text(error.text) if error.text else None
    if not request.flags & NORESPONSE:
        flags, matchtag = request.flags, request.matchtag
        broker.router.deliver(
            Response(
                request.routes,
                request.topic,
                payload,
                flags,
                ROUTER.userid,
                ROUTER.rolemask,
                errnum,
                matchtag,
            )
        )


def subscribe(broker: BrokerEngine, client: Client, request: Request) -> None:
    """Add a prefix; one that is added twice is to be taken back twice."""
    topic = unpack(request.payload, Topic).topic
    if len(topic) > MAX_NAME_LENGTH:
        raise FluxError(EPROTO, f"a prefix has at most {MAX_NAME_LENGTH} characters")
    if topic not in client.subscriptions and len(client.subscriptions) >= MAX_SUBSCRIPTIONS:
        raise FluxError(ENOSPC, f"{MAX_SUBSCRIPTIONS} prefixes are the most")
    client.subscriptions[topic] = client.subscriptions.get(topic, 0) + 1
    client.prefixes = tuple(client.subscriptions)


def unsubscribe(broker: BrokerEngine, client: Client, request: Request) -> None:
    """Take a prefix back."""
    topic = unpack(request.payload, Topic).topic
    times = client.subscriptions.get(topic, 0)
    if not times:
        raise FluxError(ENOENT)
    if times > 1:
        client.subscriptions[topic] = times - 1
        return
    del client.subscriptions[topic]
    client.prefixes = tuple(client.subscriptions)


def add(broker: BrokerEngine, client: Client, request: Request) -> None:
    """Register a service; a guest's begins with its userid."""
    service = unpack(request.payload, ServiceName).service
    if not request.rolemask & OWNER and not service.startswith(f"{request.userid}-"):
        raise FluxError(EPERM)
    if not service or "." in service or len(service) > MAX_NAME_LENGTH:
        raise FluxError(EINVAL, "a service is named by one word")
    if broker.registry.has(service):
        raise FluxError(EEXIST)
    if len(client.services) >= MAX_SERVICES:
        raise FluxError(ENOSPC, f"{MAX_SERVICES} services are the most")
    broker.registry.add_client(service, client)
    client.services[service] = None


def remove(broker: BrokerEngine, client: Client, request: Request) -> None:
    """Take a service back; what it got before is still its to answer."""
    service = unpack(request.payload, ServiceName).service
    if service not in client.services:
        raise FluxError(ENOENT)
    del client.services[service]
    broker.registry.remove(service)


Method = Callable[["BrokerEngine", "Client", Request], None]

METHODS: dict[str, Method] = {
    "event.subscribe": subscribe,
    "event.unsubscribe": unsubscribe,
    "service.add": add,
    "service.remove": remove,
}
