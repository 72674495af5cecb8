"""Every message that was recorded of a real broker and its clients, through our engines.

A request of a client goes into a tree like the one that was recorded (three brokers in a chain); what comes back is
compared with what the real broker answered, field by field. What differs from run to run, uuids and times, is put
in the same words on both sides by `settled`; what we do otherwise on purpose is listed in `OTHERWISE`, with the reason.
A recorded message that is neither played here nor named in a list fails `test_every_vector_is_played`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import pytest

from specwire.generated import flux
from specwire.generated.errors import DecodeError
from specwire.generated.flux import AnyMessage, Event, Request, Response
from specwire.runtime.flux.actions import Link, ToChild, ToParent
from specwire.runtime.flux.broker import BrokerEngine
from specwire.runtime.flux.config import Settings
from specwire.runtime.flux.events import ChildLeft, ParentLost
from specwire.runtime.flux.topology import Tree as Shape
from tests.generated.vectors import entries, frames_of
from tests.runtime.flux.tree import LocalClient, Tree, alone, join

CORE = {entry["name"]: entry for entry in entries("flux-core-0.88.json")}
COMMANDS = {entry["name"]: entry for entry in entries("flux-cli-0.88.json")}
MALFORMED = {entry["name"]: entry for entry in entries("flux-malformed.json")}

OWNER = 0
"""The userid of the recorded instance's owner."""

ELSEWHERE = {
    "auth.accept": "the octet after accept is the connector's; `authorise` gives it: test_playbook_clients",
    "cred.user_role_denied_service.request": "no answer was recorded, and there is no service module here",
}
"""Recorded messages that are not played here, and why."""

PLAYED: set[str] = set()
"""The names of the messages that the tests below play."""

Test = TypeVar("Test", bound=Callable[..., None])


def plays(*names: str) -> Callable[[Test], Test]:
    """Say which recorded messages a test plays."""
    unknown = [name for name in names if name not in CORE and name not in COMMANDS]
    assert not unknown, f"no such vectors: {unknown}"
    PLAYED.update(names)
    return lambda test: test


def recorded(name: str) -> AnyMessage:
    """Return a recorded message."""
    return flux.decode(frames_of(CORE[name] if name in CORE else COMMANDS[name]))


def a_request(name: str) -> Request:
    """Return a recorded request."""
    message = recorded(name)
    assert isinstance(message, Request)
    return message


RECORDED = Settings(tree=Shape(3, 1), owner=OWNER, hosts=("vm",), process=11042, forward_level=-1)
"""An instance like the recorded one: ranks 0, 1 and 2, each below the one before."""


def chain() -> Tree:
    """Return that instance."""
    return Tree(3, 1, settings=lambda _: RECORDED)


# --- one request, one response


class Asked(NamedTuple):
    """A request of a client, its one answer, and the rank whose socket it was sent on."""

    request: str
    response: str
    rank: int = 0


STORIES = (
    "EHOSTUNREACH",
    "event.publish",
    "event.unsubscribe",
    "overlay.",
    "service.add.EEXIST",
    "streaming.state-machine",
)
"""How requests begin that need something done before them: each has a test of its own below."""


def pairs() -> Iterator[Asked]:
    """Yield each request that has a response of the same name or, of the command line, right behind it."""
    for name in CORE:
        response = f"{name.removesuffix('.request')}.response"
        if (
            response in CORE
            and not name.startswith(STORIES)
            and not name.endswith((".response", ".rx", ".tx"))
        ):
            rank = re.search(r"from_rank(\d)|subscribe.rank(\d)", name)
            yield Asked(name, response, int(rank[1] or rank[2]) if rank else 0)
    for name, response in pairwise(COMMANDS):
        if name.endswith(".request") and response.endswith(".response") and "dmesg" not in name:
            yield Asked(name, response)


@pytest.mark.parametrize("asked", [*pairs()], ids=lambda asked: str(asked.request))
def test_request_gets_the_recorded_response(asked: Asked) -> None:
    """The only message that comes back is the real broker's answer."""
    client = chain().client(asked.rank, OWNER)
    if "unsubscribe" in asked.request:
        client.request("event.subscribe", {"topic": "my."})
        client.received.clear()
    assert played(client, asked.request) == as_said(asked.response)


def played(client: LocalClient, *names: str) -> list[dict[str, Any]]:
    """Return what a client gets for recorded messages that it sends."""
    before = len(client.received)
    for name in names:
        client.send(recorded(name))
    client.tree.settle()
    assert not client.tree.pending()
    return [settled(message) for message in client.received[before:]]


def as_said(*names: str) -> list[dict[str, Any]]:
    """Return recorded messages as `played` returns ours."""
    return [settled(recorded(name)) for name in names]


def settled(message: AnyMessage) -> dict[str, Any]:
    """Return a message's fields, with what differs from run to run in the same words.

    Events of the real broker have the routes that they were handed on by inside of it; the specification says
    that an event has none, and nobody reads them: ours have none, as its own have between brokers.
    """
    fields = {name: getattr(message, name) for name in type(message).__match_args__}
    fields["type"], fields["flags"] = type(message).__name__, message.wire_flags
    if isinstance(message, Event):
        fields["routes"], fields["sequence"] = (), "NUMBER"
    payload = fields.get("payload")
    if payload and payload.startswith(b"{") and payload.endswith(b"}\0"):
        fields["payload"] = settled_value(json.loads(payload[:-1]))
    return fields


def settled_value(value: Any) -> Any:
    """Return a JSON value with uuids, durations and event numbers in the same words."""
    if isinstance(value, list):
        return [settled_value(item) for item in value]
    if not isinstance(value, dict):
        return value
    out = {key: settled_value(item) for key, item in value.items()}
    if "duration" in out:
        out["duration"] = "SECONDS"
    if out.keys() == {"seq"}:
        out["seq"] = "NUMBER"
    if "route" in out:
        hops = str(out["route"]).split("!")
        out["route"] = [re.sub("^[0-9a-f]{8}$", "HOP", hop) for hop in hops]
    return out


@plays("noresponse.request", "request.no_topic", "control.from_local_client")
@pytest.mark.parametrize("name", ["noresponse.request", "request.no_topic", "control.from_local_client"])
def test_what_gets_no_answer(name: str) -> None:
    """Nothing at all comes back."""
    assert played(chain().client(0, OWNER), name) == []


def test_responses_have_what_clients_in_c_need() -> None:
    """The flag and the delimiter of an empty route stack, and a rolemask that is not 0."""
    for asked in pairs():
        client = chain().client(asked.rank, OWNER)
        client.send(recorded(asked.request))
        client.tree.settle()
        for message in client.received:
            assert message.wire_flags & 0x08
            assert message.routes is not None
            assert message.rolemask


# --- streams


@plays("streaming.state-machine.monitor.request", "streaming.response.1", "streaming.response.2")
def test_stream_ends_with_enodata() -> None:
    """Each response has the flag 0x40, and the last one the number 61."""
    client = chain().client(0, OWNER)
    got = played(client, "streaming.state-machine.monitor.request")
    assert got == as_said("streaming.response.1", "streaming.response.2")


@plays(*(name for name in COMMANDS if "dmesg" in name))
def test_dmesg_gives_the_recorded_lines() -> None:
    """Each line is a response of its own, written as the real broker writes it."""
    tree = chain()
    client = tree.client(0, OWNER)
    names = [name for name in COMMANDS if name.endswith("dmesg.response")]
    tree.engines[0].journal.clear()
    lines = [str(COMMANDS[name]["fields"]["payload"]) for name in names]
    for line in lines:
        log_at_its_time(tree.engines[0], line)
    got = played(client, "cli.31.log.dmesg.request")
    assert got[:-1] == as_said(*names)
    assert (got[-1]["errnum"], got[-1]["flags"]) == (61, 0x49)


def log_at_its_time(engine: BrokerEngine, line: str) -> None:
    """Log the text of a recorded line, at the time that it states."""
    _, time, _, app, _, _, _, text = line.rstrip("\0").split(" ", 7)
    engine.log(text, datetime.fromisoformat(time).timestamp(), app=app)


# --- events


EVENTS = [
    ("event.publish.request", "event.publish.response", "(event.publish)"),
    ("event.publish.nopayload.request", "event.publish.nopayload.response", "nopayload"),
    ("event.publish.private.request", "event.publish.private.response", "private"),
]


@plays(
    *(name for story in EVENTS for name in story[:2]),
    *(name for name in CORE if name.startswith("event.delivered") and "direct" not in name),
)
@pytest.mark.parametrize(("request_", "response", "word"), EVENTS)
def test_published_event_is_delivered_everywhere(request_: str, response: str, word: str) -> None:
    """At rank 0 with the publisher's credentials, at rank 2 without LOCAL; it comes before the response."""
    tree = chain()
    near, far = tree.client(0, OWNER), tree.client(2, OWNER)
    for client in (near, far):
        client.ask("event.subscribe", {"topic": "h2."})
    far.received.clear()
    at_0, at_2 = sorted(
        name for name in CORE if name.startswith("event.delivered") and word in name and "direct" not in name
    )
    assert played(near, request_) == as_said(at_0, response)
    assert [settled(message) for message in far.received] == as_said(at_2)


@plays(
    "event.publish.badflags.request",
    "event.publish.badflags.response",
    "event.publish.to_rank1.request",
    "event.publish.to_rank1.response",
)
@pytest.mark.parametrize(("name", "rank"), [("event.publish.badflags", 0), ("event.publish.to_rank1", 1)])
def test_event_that_is_not_published(name: str, rank: int) -> None:
    """Unknown flags, and another rank than 0, are answered with EPROTO."""
    assert played(chain().client(rank, OWNER), f"{name}.request") == as_said(f"{name}.response")


@plays(*(name for name in CORE if name.startswith("event.delivered.direct")))
@pytest.mark.parametrize(("name", "rank"), [("direct", 0), ("direct2", 2)])
def test_bare_event_is_numbered_and_delivered(name: str, rank: int) -> None:
    """A client sends an event without a number; rank 0 numbers it, and everybody gets it, its sender too."""
    tree = chain()
    near, far = tree.client(0, OWNER), tree.client(2, OWNER)
    for client in (near, far):
        client.ask("event.subscribe", {"topic": "h2."})
        client.received.clear()
    (near if rank == 0 else far).send(Event(topic=f"h2.{name}", payload=b'{"a":1}\0'))
    tree.settle()
    assert [settled(message) for message in near.received] == as_said(f"event.delivered.{name}.rank0_client")
    assert [settled(message) for message in far.received] == as_said(f"event.delivered.{name}.rank2_client")


@plays("cli.14.my.topic.event", "cli.17.my.x.event", "cli.18.my.x.event")
def test_event_of_the_command_line() -> None:
    """`flux event pub` sends a bare event and gets nothing back; `flux event sub` gets the event."""
    client = chain().client(0, OWNER)
    assert played(client, "cli.14.my.topic.event") == []
    assert played(client, "cli.15.event.subscribe.request") == as_said("cli.16.event.subscribe.response")
    assert played(client, "cli.17.my.x.event") == as_said("cli.18.my.x.event")


@plays(*(name for name in CORE if name.startswith("event.unsubscribe")))
def test_unsubscribing() -> None:
    """Once for each subscription; then ENOENT."""
    client = chain().client(0, OWNER)
    played(client, "event.subscribe.request")
    assert played(client, "event.unsubscribe.request") == as_said("event.unsubscribe.response")
    assert played(client, "event.unsubscribe.ENOENT.request") == as_said("event.unsubscribe.ENOENT.response")


@plays("service.add.EEXIST.request", "service.add.EEXIST.response")
def test_service_that_is_there() -> None:
    """A second service of the name is refused with EEXIST."""
    client = chain().client(0, OWNER)
    played(client, "service.add.request")
    assert played(client, "service.add.EEXIST.request") == as_said("service.add.EEXIST.response")


# --- what is lost


@plays(
    "pending.overlay.health.stream.first",
    "EHOSTUNREACH.pending_rpc_on_lost_child",
    "EHOSTUNREACH.new_rpc_to_lost_rank2.request",
    "EHOSTUNREACH.new_rpc_to_lost_rank2.response",
)
def test_lost_child() -> None:
    """A pending stream through it ends with EHOSTUNREACH, and a new request gets that at once."""
    tree = chain()
    client, other = tree.client(1, OWNER), tree.client(0, OWNER)
    client.send(Request(topic="overlay.health", flags=0x40, nodeid=2, matchtag=100))
    tree.settle()
    assert [settled(message) for message in client.received] == as_said("pending.overlay.health.stream.first")
    client.received.clear()
    tree.kill(2)
    tree.settle()
    assert [settled(message) for message in client.received] == as_said(
        "EHOSTUNREACH.pending_rpc_on_lost_child"
    )
    got = played(other, "EHOSTUNREACH.new_rpc_to_lost_rank2.request")
    assert got == as_said("EHOSTUNREACH.new_rpc_to_lost_rank2.response")


@plays(
    "overlay.disconnect-subtree.request",
    "overlay.disconnect-subtree.response",
    "EHOSTUNREACH.pending_upstream_rpc.on_parent_disconnect",
    "EHOSTUNREACH.ping_rank1_after_disconnect.request",
    "EHOSTUNREACH.ping_rank1_after_disconnect.response",
)
def test_disconnected_subtree() -> None:
    """A pending stream upwards says ``overlay disconnect``; then rank 1 cannot be reached."""
    tree = chain()
    above, below = tree.client(0, OWNER), tree.client(1, OWNER)
    tree.engines[0].add_service("slow")
    below.send(Request(topic="slow.monitor", flags=0x40, nodeid=0, matchtag=200))
    tree.settle()
    assert below.received == []
    got = played(above, "overlay.disconnect-subtree.request")
    assert got == as_said("overlay.disconnect-subtree.response")
    (expected,) = as_said("EHOSTUNREACH.pending_upstream_rpc.on_parent_disconnect")
    assert [settled(message) for message in below.received] == [{**expected, "topic": "slow.monitor"}]
    got = played(above, "EHOSTUNREACH.ping_rank1_after_disconnect.request")
    assert got == as_said("EHOSTUNREACH.ping_rank1_after_disconnect.response")
    assert {rank for rank, event in tree.reports if isinstance(event, ParentLost)} == {1, 2}


# --- between brokers


def uuid_in(name: str) -> str:
    """Return the uuid in the payload of a recorded message."""
    return str(json.loads(str(CORE[name]["fields"]["payload"]).rstrip("\0"))["uuid"])


@plays(
    *(f"overlay.hello.{kind}.{side}" for kind in ("request", "response") for side in ("tx", "rx")),
    *(f"overlay.goodbye.request.{side}" for side in ("tx", "rx")),
    "overlay.goodbye.response.tx",
)
def test_coming_and_going() -> None:
    """Hello and goodbye, octet for octet as between two real brokers; ROUTER's frame is not ours to write."""
    parent = alone(1, RECORDED, uuid_in("overlay.hello.response.tx"))
    child = alone(2, RECORDED, uuid_in("overlay.hello.request.tx"))
    hello = [action.message for action in child.start(0.0) if isinstance(action, ToParent)]
    assert [message.encode() for message in hello] == [[*frames_of(CORE["overlay.hello.request.tx"])]]
    reply = parent.from_child(child.uuid, as_routed("overlay.hello.request.rx"), 0.0)[0]
    assert reply == ToChild(child.uuid, recorded("overlay.hello.response.rx"))
    assert as_routed("overlay.hello.response.tx") == recorded("overlay.hello.response.rx")
    child.from_parent(recorded("overlay.hello.response.rx"), 0.0)
    goodbye = [action.message for action in child.stop(0.0) if isinstance(action, ToParent)]
    assert [message.encode() for message in goodbye] == [[*frames_of(CORE["overlay.goodbye.request.tx"])]]
    reply = parent.from_child(child.uuid, as_routed("overlay.goodbye.request.rx"), 0.0)[0]
    assert reply == ToChild(child.uuid, as_routed("overlay.goodbye.response.tx"))


def as_routed(name: str) -> AnyMessage:
    """Return a recorded message without its first route, which is the routing id of a ROUTER."""
    message = recorded(name)
    assert message.routes
    return message.replace(routes=message.routes[1:])


@plays(*(name for name in CORE if name.startswith("control.") and name != "control.from_local_client"))
def test_control_messages() -> None:
    """STATUS, HEARTBEAT and DISCONNECT, octet for octet, and taken as what they are."""
    root, middle, leaf = alone(0, RECORDED), alone(1, RECORDED), alone(2, RECORDED)
    root.start(0.0)
    join(middle, root)
    said = join(leaf, middle)
    assert [message.encode() for message in said] == [[*frames_of(CORE["control.STATUS.tx"])]]
    beat = [action.message for action in leaf.tick(5.0) if isinstance(action, ToParent)]
    assert [message.encode() for message in beat] == [[*frames_of(CORE["control.HEARTBEAT.tx"])]]
    assert middle.from_child("leaf", as_routed("control.HEARTBEAT.rx"), 5.0) == []
    root.from_child("middle", as_routed("control.STATUS.rx"), 5.0)
    assert root.overlay.status.word == "full"
    lost = [
        action.message for action in middle.child_gone("leaf", "gone", 6.0) if isinstance(action, ToParent)
    ]
    assert [message.encode() for message in lost] == [
        [*frames_of(CORE["control.STATUS.lost_child(3=degraded).tx"])]
    ]
    told = [
        action
        for action in root.malformed(Link("child", "middle"), "odd", 7.0)
        if isinstance(action, ToChild)
    ]
    assert told == [ToChild("middle", as_routed("control.DISCONNECT.tx"))]
    assert as_routed("control.DISCONNECT.tx") == recorded("control.DISCONNECT.rx")
    middle.from_parent(recorded("control.DISCONNECT.rx"), 7.0)
    assert not middle.is_online


@plays("heartbeat.pulse.event.rank2.rx")
def test_pulse() -> None:
    """The first event is the pulse, without a payload, in the name of the owner."""
    root, middle = alone(0, RECORDED), alone(1, RECORDED)
    root.start(0.0)
    join(middle, root)
    (pulse,) = [action.message for action in root.tick(0.0) if isinstance(action, ToChild)]
    join(alone(2, RECORDED), middle)
    (passed_on,) = [action for action in middle.from_parent(pulse, 0.0) if isinstance(action, ToChild)]
    assert passed_on == ToChild("leaf", recorded("heartbeat.pulse.event.rank2.rx"))


# --- what is no message


STRICTER = {
    "extra frames before proto": "our codec reads a message only if every frame is accounted for",
    "event w/ route flag": "its last field, which is unused, is not 0",
}
"""What the real codec reads and ours does not, and why."""


def odd(name: str) -> bool:
    """Tell whether a malformed vector is no message to our codec."""
    return MALFORMED[name]["errno"] == 71 or name in STRICTER


@pytest.mark.parametrize("name", [*filter(odd, MALFORMED)])
def test_malformed_message_costs_its_sender_the_connection(name: str) -> None:
    """Nobody else notices: another client is served, and the child's parent goes on."""
    tree = chain()
    bad, good = tree.client(0, OWNER), tree.client(0, OWNER)
    try:
        flux.decode(parts_of(MALFORMED[name]["body_hex"]))
    except DecodeError as error:
        tree.perform(0, tree.engines[0].malformed(Link("client", bad.uuid), str(error), 0.0))
        tree.perform(0, tree.engines[0].malformed(Link("child", tree.engines[1].uuid), str(error), 0.0))
    else:
        pytest.fail("it can be read")
    tree.settle()
    assert bad.refused
    assert good.ask("broker.ping", {}).errnum == 0
    assert [event.rank for event in tree.reported(ChildLeft)] == [1, 2]


@pytest.mark.parametrize(
    "name", [name for name in MALFORMED if MALFORMED[name]["errno"] == 0 and not odd(name)]
)
def test_odd_message_that_is_read(name: str) -> None:
    """What the real codec takes does no harm: it is answered or dropped, and the client stays."""
    client = chain().client(0, OWNER)
    message = flux.decode(parts_of(MALFORMED[name]["body_hex"]))
    client.send(message)
    client.tree.settle()
    wanted = isinstance(message, Request) and message.topic is not None and not message.flags & 0x04
    assert [type(answer) for answer in client.received] == [Response] * wanted
    assert client.refused is None


def test_response_of_a_client_with_an_empty_route_stack() -> None:
    """It is dropped: it takes down the real broker."""
    client = chain().client(0, OWNER)
    (framed,) = [entry for entry in MALFORMED.values() if entry["errno"] is None]
    message = flux.decode(parts_of(framed["body_hex"]))
    assert isinstance(message, Response)
    client.send(message)
    client.tree.settle()
    assert client.received == []
    assert client.ask("broker.ping", {}).errnum == 0


def parts_of(body_hex: str) -> list[bytes]:
    """Return the parts of a framed message: none of the recorded ones that can be cut is long."""
    body, parts = bytes.fromhex(body_hex), []
    while body:
        parts.append(body[1 : 1 + body[0]])
        body = body[1 + body[0] :]
    return parts


def test_every_vector_is_played() -> None:
    """A vector that is added fails here until a test plays it."""
    in_pairs = {name for asked in pairs() for name in asked[:2]}
    assert {*CORE, *COMMANDS} - PLAYED - in_pairs - {*ELSEWHERE} == set()
    framing = {name for name, entry in MALFORMED.items() if entry["errno"] == 22}
    assert framing == {"part length overruns", "long length 0xffffffff"}  # the stream decoder's: test_stream
