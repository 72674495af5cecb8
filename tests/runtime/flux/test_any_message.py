"""Nothing that a peer sends makes an engine raise, and everything that an engine says can be written."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from specwire.generated.errors import EncodeError
from specwire.generated.flux import NODEID_ANY, AnyMessage, Control, Event, Request, Response
from specwire.runtime.flux.actions import Action, CloseClient, ToChild, ToClient, ToParent
from specwire.runtime.flux.hello import HELLO
from specwire.runtime.flux.services import BUILT_IN
from specwire.runtime.flux.wire import FLUX, Wire
from specwire.runtime.flux.wires import WIRES
from tests.examples import examples
from tests.runtime.flux.tree import CHAIN, member

NAMES = ("middle", "leaf", "root", "connector", "client", "stranger", "x")
TOPICS = (
    *(
        f"{name}.{word}"
        for name, kind in BUILT_IN.items()
        for word in (*kind.METHODS, "disconnect", "cancel")
    ),
    "event.subscribe",
    "event.unsubscribe",
    "service.add",
    "service.remove",
    HELLO,
    "overlay.goodbye",
    "heartbeat.pulse",
    "work.do",
    "mine.do",
    "nosuch",
    "",
)
PAYLOADS = (
    b"{}\0",
    b'{"topic":"","flags":0,"payload":"YQ=="}\0',
    b'{"topic":"a","flags":32}\0',
    b'{"service":"mine"}\0',
    b'{"name":"rank","value":"x"}\0',
    b'{"key":"a","value":{"b":[]}}\0',
    b'{"rank":2,"version":22528,"uuid":"stranger","status":3,"hostname":"vm"}\0',
    b'{"rank":2,"version":22528,"uuid":"leaf","status":99,"hostname":"vm"}\0',
    b'{"rank":-1,"matchtag":1,"final":99,"follow":true}\0',
    b'{"uuid":"root"}\0',
    b"<13>1 line",
)
ROUTES = st.none() | st.lists(st.sampled_from(NAMES), max_size=4).map(tuple)
NUMBER = st.sampled_from([0, 1, 2, 3, 4, 5, 71, 1000, 0xFFFFFFFE, NODEID_ANY])
COMMON = {
    "routes": ROUTES,
    "topic": st.none() | st.sampled_from(TOPICS),
    "payload": st.none() | st.sampled_from(PAYLOADS) | st.binary(max_size=20),
    "flags": st.integers(0, 255).map(lambda bits: bits & 0xF4),
    "userid": NUMBER,
    "rolemask": NUMBER,
}
MESSAGES: st.SearchStrategy[AnyMessage] = st.one_of(
    st.builds(Request, nodeid=NUMBER, matchtag=NUMBER, **COMMON),
    st.builds(Response, errnum=NUMBER, matchtag=NUMBER, **COMMON),
    st.builds(Event, sequence=NUMBER, **COMMON),
    st.builds(Control, routes=ROUTES, type_=NUMBER, status=NUMBER),
)
SENDERS = ("parent", "leaf", "stranger", "client", "guest", "work", "time")


def speak(wire: Wire, actions: list[Action]) -> list[Action]:
    """Write every message of some actions, and return them."""
    for action in actions:
        if isinstance(action, ToClient):
            assert wire.local.decode(wire.local.encode(action.message)) == action.message
        elif isinstance(action, ToParent | ToChild):
            read = wire.decode(wire.encode(action.message))
            assert read == action.message or wire is not FLUX
    return actions


def hear(wire: Wire, message: AnyMessage) -> AnyMessage | None:
    """Return what is read of a message of a neighbour; None where its edition cannot say it."""
    try:
        return wire.decode(wire.encode(message))
    except EncodeError:
        return None


@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
@settings(max_examples=examples(120))
@given(st.lists(st.tuples(st.sampled_from(SENDERS), MESSAGES), min_size=1, max_size=20))
def test_any_message_from_anybody(wire: Wire, sent: list[tuple[str, AnyMessage]]) -> None:
    """From every side, in every order; and the broker goes on to serve."""

    def written(actions: list[Action]) -> list[Action]:
        return speak(wire, actions)

    engine = member(replace(CHAIN, wire=wire))
    engine.add_service("work")
    engine.accept_client("client", CHAIN.owner, 0.0)
    now = 0.0
    for sender, message in sent:
        now += 1.0
        if sender in ("parent", "leaf", "stranger"):
            heard = hear(wire, message)
            if heard is None:
                continue
            message = heard
        match sender:
            case "parent":
                written(engine.from_parent(message, now))
            case "client" | "guest":
                written(engine.from_client(sender, message, now))
            case "work":
                if isinstance(message, Response):
                    written(engine.from_service("work", message, now))
            case "time":
                written(engine.tick(now))
            case _:
                written(engine.from_child(sender, message, now))
    engine.accept_client("fresh", CHAIN.owner, now)
    ping = Request(topic="broker.ping", payload=b"{}\0", nodeid=1, matchtag=1)
    (answer,) = written(engine.from_client("fresh", ping, now))
    assert isinstance(answer, ToClient)
    assert isinstance(answer.message, Response)
    assert answer.message.errnum == 0
    assert not [a for a in written(engine.client_gone("fresh", now)) if isinstance(a, CloseClient)]
    written(engine.stop(now))
