"""What a running broker tells about itself: the document that its status socket gives.

Names and reasons in it may come from the wire; whoever prints them makes them fit to be seen (`narration.show`).
"""

from __future__ import annotations

import msgspec

from specwire.runtime.capture.counts import TapCounts
from specwire.runtime.flux.broker import BrokerEngine
from specwire.runtime.flux.connector import Counts
from specwire.runtime.flux.counters import Counters

ROLE = "flux-broker"
"""How the status socket of a broker is named."""


class ChildStatus(msgspec.Struct, frozen=True):
    """A broker below: silent for `idle_s`, with `pending` requests that it has to answer."""

    rank: int
    uuid: str
    hostname: str
    status: str
    torpid: bool
    present: bool
    idle_s: float
    pending: int


class LocalStatus(msgspec.Struct, frozen=True):
    """What the local socket has done, and how many clients it has."""

    clients: int
    accepted: int
    denied: int
    malformed: int
    slow: int
    received: int
    sent: int


class BrokerStatus(msgspec.Struct, frozen=True, tag="broker", tag_field="role"):
    """A broker; `phase` tells whether it is in the tree, `subtree` how well it and what is below it are."""

    rank: int
    size: int
    fanout: int
    uuid: str
    pid: int
    protocol: str
    uri: str
    endpoint: str
    phase: str
    subtree: str
    parent: str
    pending_upward: int
    sequence: int
    up_s: float
    children: tuple[ChildStatus, ...]
    services: tuple[str, ...]
    local: LocalStatus
    counters: Counters
    captures: tuple[TapCounts, ...] = ()


def describe_broker(
    engine: BrokerEngine,
    uri: str,
    endpoint: str,
    local: Counts,
    now: float,
    captures: tuple[TapCounts, ...] = (),
) -> BrokerStatus:
    """Return the status of a broker."""
    overlay, settings = engine.overlay, engine.settings
    children = overlay.children
    return BrokerStatus(
        rank=engine.rank,
        size=settings.tree.size,
        fanout=settings.tree.fanout,
        uuid=engine.uuid,
        pid=settings.process,
        protocol=settings.wire.name,
        uri=uri,
        endpoint=endpoint,
        phase=overlay.phase.name.lower(),
        subtree=overlay.status.word,
        parent=overlay.parent or "",
        pending_upward=len(overlay.tracker),
        sequence=engine.publisher.sequence,
        up_s=now - engine.started,
        children=tuple(
            ChildStatus(
                child.rank,
                child.uuid,
                child.hostname,
                child.status.word,
                child.torpid,
                children.present.get(child.uuid) is child,
                now - child.heard,
                len(child.tracker),
            )
            for _, child in sorted(children.known.items())
        ),
        services=tuple(engine.registry.names()),
        local=LocalStatus(
            len(engine.clients),
            local.accepted,
            local.denied,
            local.malformed,
            local.slow,
            local.received,
            local.sent,
        ),
        counters=msgspec.structs.replace(engine.counters),
        captures=captures,
    )
