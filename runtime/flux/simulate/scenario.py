"""What a simulation does, as a scenario file says it. All times are seconds of virtual time from the beginning."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, field

from specwire.runtime.flux.simulate.durations import Duration, Seconds

Positive = Annotated[float, Meta(gt=0)]
Text = Annotated[str, Meta(min_length=1)]
Ranks = Annotated[str, Meta(min_length=1)]
"""See `specwire.runtime.flux.simulate.ranks`."""
DIRECTIONS = ("any", "upstream", "random")
"""What `Load.to` may be besides ranks."""


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table of the file."""


class Links(Table, frozen=True):
    """The connections between brokers."""

    latency_s: Duration = 0.0001
    """From one end to the other."""
    loss: Annotated[float, Meta(ge=0, lt=1)] = 0.0
    """The chance that a message is lost once on its way, and sent again."""
    retransmit_s: Positive = 0.2
    """After which it is sent again; this doubles each time."""
    handshake_round_trips: Annotated[int, Meta(ge=0, le=100)] = 4
    """Before a new connection carries messages: TCP one, ZMTP one, CURVE two."""


class Broker(Table, frozen=True):
    """What messages cost a broker, which handles one after the other."""

    receive_s: Seconds = 0.0
    send_s: Seconds = 0.0


class Start(Table, frozen=True):
    """When brokers start: each draws its delay, and those of a level wait for those above them in addition."""

    delay_s: Duration = 0.0
    level_s: Seconds = 0.0


class Timers(Table, frozen=True):
    """The times that the engines live by; those that are not given are the protocol's."""

    heartbeat: Positive | None = None
    idle: Positive | None = None
    torpid: Positive | None = None
    expiry: Positive | None = None


class Service(Table, frozen=True):
    """A service that answers each request with its payload, after a while. It is at all ranks that are named."""

    name: Text
    ranks: Ranks = "all"
    answer_s: Duration = 0.0


class Load(Table, frozen=True):
    """Clients that ask again and again, one at each rank that is named."""

    clients: Ranks
    to: Text = "any"
    """``any``, ``upstream``, ``random`` (any rank, drawn each time), or ranks, which are asked in turn."""
    topic: Text = "broker.ping"
    payload: dict[str, Any] = field(default_factory=dict)
    rate_hz: Positive = 1.0
    """Requests of each client in a second."""
    start_s: Seconds = 0.0
    end_s: Seconds | None = None
    count: Annotated[int, Meta(ge=1)] | None = None
    """Requests of each client, at most."""
    spread: bool = True
    """Whether each client begins at its own moment in the first period; else all begin at once."""


class Publication(Table, frozen=True):
    """Events that a broker publishes, and clients that subscribe to them."""

    at_s: Seconds
    rank: Annotated[int, Meta(ge=0)] = 0
    topic: Text = "simulated"
    every_s: Positive = 1.0
    count: Annotated[int, Meta(ge=1)] = 1
    subscribers: Ranks | None = None


class Kill(Table, frozen=True):
    """Brokers that end without a word."""

    at_s: Seconds
    ranks: Ranks
    restart_after_s: Seconds | None = None
    how: Literal["process", "machine"] = "process"
    """Whether the system is there to close the connections."""


class Hang(Table, frozen=True):
    """Brokers that stand still for a while, as after SIGSTOP."""

    at_s: Seconds
    ranks: Ranks
    for_s: Seconds


class Partition(Table, frozen=True):
    """Connections of these ranks to their parents that carry nothing for a while: each subtree is cut off."""

    at_s: Seconds
    ranks: Ranks
    for_s: Seconds


class Scenario(Table, frozen=True):
    """All of it."""

    title: str = ""
    seed: int = 0
    duration_s: Annotated[float, Meta(gt=0, le=1e9)] = 60.0
    links: Links = Links()
    broker: Broker = Broker()
    start: Start = Start()
    timers: Timers = Timers()
    service: tuple[Service, ...] = ()
    rpc: tuple[Load, ...] = ()
    event: tuple[Publication, ...] = ()
    kill: tuple[Kill, ...] = ()
    hang: tuple[Hang, ...] = ()
    partition: tuple[Partition, ...] = ()
