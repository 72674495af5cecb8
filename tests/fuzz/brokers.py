"""What must hold for any octets that a broker's neighbours and clients send: nothing is raised, whatever the broker says
can be written, and the next client is served.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from specwire.generated.errors import DecodeError
from specwire.generated.flux import Request, Response
from specwire.runtime.flux.actions import PARENT, Action, Link, ToChild, ToClient, ToParent
from specwire.runtime.flux.broker import BrokerEngine
from specwire.runtime.flux.wire import Wire
from specwire.runtime.flux.wires import find_wire
from tests.fuzz.codecs import demand
from tests.fuzz.pieces import split
from tests.runtime.flux.tree import CHAIN, GUEST, member

SENDERS = (
    PARENT,
    Link("child", "leaf"),
    Link("child", "stranger"),
    Link("client", "client"),
    Link("client", "guest"),
)


def broker_check(name: str) -> Callable[[bytes], None]:
    """Return the check of a broker that speaks `name`.

    Its input is pieces, a message each, of pieces: an octet that says who sends it and how long after the last one, then
    the frames.
    """
    wire = find_wire(name)
    settings = replace(CHAIN, wire=wire, allow_guests=True)

    def check(octets: bytes) -> None:
        engine = member(settings)
        engine.accept_client("client", CHAIN.owner, 0.0)
        engine.accept_client("guest", GUEST, 0.0)
        now = 0.0
        for piece in split(octets):
            head, *frames = split(piece) or [b""]
            number = head[0] if head else 0
            now += number // len(SENDERS)
            write(wire, take(engine, wire, SENDERS[number % len(SENDERS)], frames, now))
            write(wire, engine.tick(now))
        engine.accept_client("fresh", CHAIN.owner, now)
        ping = Request(topic="broker.ping", payload=b"{}\0", nodeid=engine.rank, matchtag=1)
        said = engine.from_client("fresh", ping, now)
        write(wire, said)
        answers = [action.message for action in said if isinstance(action, ToClient)]
        (answer,) = (message for message in answers if isinstance(message, Response))
        demand((answer.matchtag, answer.errnum) == (1, 0), "the next client is served")
        write(wire, engine.stop(now))

    return check


def take(engine: BrokerEngine, wire: Wire, link: Link, frames: list[bytes], now: float) -> list[Action]:
    """Give frames to the engine as a shell does."""
    try:
        message = (wire.local if link.kind == "client" else wire).decode(frames)
    except DecodeError as error:
        return engine.malformed(link, str(error), now)
    match link.kind:
        case "parent":
            return engine.from_parent(message, now)
        case "child":
            return engine.from_child(link.peer, message, now)
        case "client":
            return engine.from_client(link.peer, message, now)


def write(wire: Wire, actions: list[Action]) -> None:
    """Write every message of some actions, and read it."""
    for action in actions:
        match action:
            case ToParent(message) | ToChild(_, message):
                wire.decode(wire.encode(message))
            case ToClient(_, message):
                demand(
                    wire.local.decode(wire.local.encode(message)) == message, "a client reads what is said"
                )
