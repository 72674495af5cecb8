"""The built-in services, as tools ask them; one sentence a test."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from specwire.generated.flux import Request, Response
from specwire.runtime.flux.actions import ToClient
from specwire.runtime.flux.answering import unpack_object
from specwire.runtime.flux.config import Settings
from specwire.runtime.flux.flags import STREAMING
from specwire.runtime.flux.services import BUILT_IN
from specwire.runtime.flux.services.service import Call, Service, serves
from tests.runtime.flux.tree import OWNER, Tree, member


def log_stays(settings: Settings) -> Settings:
    """Return settings by which no log line goes to another broker."""
    return msgspec.structs.replace(settings, forward_level=-1)


def value(answer: Response) -> dict[str, Any]:
    """Return what a response that went well says."""
    assert answer.errnum == 0, answer
    return unpack_object(answer.payload)


@pytest.mark.parametrize(
    "payload", [None, b"", b"{}", b"[]\0", b"7\0", b"{\0", b'{"a":\xff}\0', b"[" * 9999 + b"\0"]
)
def test_payload_that_is_no_object(payload: bytes | None) -> None:
    """A JSON payload must be an object and end in NUL, else errnum 71."""
    client = Tree(1).client(0)
    for topic in ("broker.ping", "attr.get", "event.subscribe", "service.add", "kvs.put", "overlay.topology"):
        client.send(Request(topic=topic, payload=payload, matchtag=1))
    assert [message.errnum for message in client.received if isinstance(message, Response)] == [71] * 6


def test_topic_of_a_service_alone() -> None:
    """A service's name without a method is an unknown method, told by the service."""
    assert Tree(1).client(0).ask("attr").payload == b"Unknown service method 'attr'\0"


# --- attr


def test_attributes_that_tools_ask_for() -> None:
    """rank, size, hostlist, security.owner, instance-level, broker.starttime: all text, flags 1."""
    tree = Tree(7)
    client = tree.client(5)
    expected = {
        "rank": "5",
        "size": "7",
        "hostlist": "vm,vm,vm,vm,vm,vm,vm",
        "security.owner": str(OWNER),
        "instance-level": "0",
        "broker.starttime": "0.00",
        "tbon.fanout": "2",
        "tbon.level": "2",
        "tbon.maxlevel": "2",
        "tbon.descendants": "0",
    }
    got = {name: value(client.ask("attr.get", {"name": name})) for name in expected}
    assert got == {name: {"value": text, "flags": 1} for name, text in expected.items()}
    assert set(expected) < set(value(client.ask("attr.list"))["names"])


def test_attributes_of_the_owner() -> None:
    """``attr.set`` and ``attr.rm``; the broker's own cannot be changed."""
    client = Tree(1).client(0)
    assert client.ask("attr.set", {"name": "mine", "value": "1"}).errnum == 0
    assert value(client.ask("attr.get", {"name": "mine"})) == {"value": "1", "flags": 0}
    assert "mine" in value(client.ask("attr.list"))["names"]
    assert client.ask("attr.rm", {"name": "mine"}).errnum == 0
    assert client.ask("attr.rm", {"name": "mine"}).errnum == 2
    assert client.ask("attr.get", {"name": "mine"}).errnum == 2
    assert client.ask("attr.set", {"name": "rank", "value": "9"}).errnum == 1
    assert client.ask("attr.rm", {"name": "rank"}).errnum == 1
    assert client.ask("attr.set", {"name": "big", "value": "x" * 70_000}).errnum == 28


# --- broker


def test_ping_gives_everything_back() -> None:
    """The answer repeats every key as it was, whatever it holds."""
    odd = b'{"seq":18446744073709551616,"deep":[[{"x":1e400}]],"pad":"\\u0000\\ud83d\\ude00"}\0'
    client = Tree(1).client(0)
    client.send(Request(topic="broker.ping", payload=odd))
    (answer,) = client.received
    assert isinstance(answer, Response) and answer.payload
    assert answer.payload.startswith(odd[:-2])


def test_info_and_statistics() -> None:
    """Who the broker is, and what it counted."""
    tree = Tree(3)
    client = tree.client(0)
    info = value(client.ask("broker.info"))
    assert (info["rank"], info["size"], info["status"], info["clients"]) == (0, 3, "full", 1)
    assert sorted(info["children"].values()) == [1, 2]
    assert set(BUILT_IN) <= set(info["services"])
    tree.engines[1].add_service("work")
    client.request("work.do", {}, nodeid=1)
    tree.settle()
    stats = value(client.ask("broker.stats-get"))
    assert stats["pending"] == 1
    assert value(client.ask("heartbeat.stats-get"))["expiry"] == 300.0


def test_peers() -> None:
    """``overlay.lspeer``: who is there, and since when silent."""
    tree = Tree(3)
    tree.advance(3.0)
    peers = value(tree.client(0).ask("overlay.lspeer"))
    assert peers == {tree.engines[rank].uuid: {"rank": rank, "idle": 3.0} for rank in (1, 2)}


def test_health_tells_why_a_child_is_not_well() -> None:
    """One that is lost, and one that has been silent for too long."""
    engine = member()
    engine.accept_client("client", OWNER, 30.0)

    def child(now: float) -> dict[str, Any]:
        (told,) = engine.from_client("client", Request(topic="overlay.health", matchtag=1), now)
        assert isinstance(told, ToClient) and isinstance(told.message, Response)
        (only,) = value(told.message)["children"]
        return dict(only)

    engine.tick(30.0)
    assert child(31.0) == {"rank": 2, "status": "full", "duration": 31.0, "torpid": True}
    engine.tick(300.0)
    assert child(301.0) == {"rank": 2, "status": "lost", "duration": 1.0, "error": "silent for 300 s"}


def test_state_machine() -> None:
    """In the tree a broker runs; a monitor for more waits, and ends when its client is gone."""
    tree = Tree(1)
    client = tree.client(0)
    tree.advance(3.0)
    assert value(client.ask("state-machine.get")) == {"state": "run", "duration": 3.0}
    assert client.ask("state-machine.wait").errnum == 0
    client.request("state-machine.monitor", {"final": 6}, flags=STREAMING)
    assert tree.pending() == {"rank 0, state-machine": 1}
    client.close()
    assert tree.pending() == {}


def test_state_machine_of_a_broker_without_a_parent() -> None:
    """It joins, says so to those who ask, and answers those who wait when it runs: 1 is join, 5 run, 61 the end."""
    tree = Tree(2)
    tree.kill(0)
    tree.advance(2.0)
    client = tree.client(1)
    assert value(client.ask("state-machine.get")) == {"state": "join", "duration": 2.0}
    wait = client.request("state-machine.wait")
    monitors = [
        client.request("state-machine.monitor", payload, flags=STREAMING)
        for payload in ({"final": 5}, {"final": 1}, {"final": 0}, None)
    ]
    assert client.answers(wait) == []
    tree.start(0)
    tree.rejoin(1)
    tree.settle()
    assert [answer.errnum for answer in client.answers(wait)] == [0]
    told = [[(a.payload, a.errnum) for a in client.answers(monitor)] for monitor in monitors]
    join, run, end = (b'{"state":1}\0', 0), (b'{"state":5}\0', 0), (None, 61)
    assert told == [[join, run, end], [join, end], [end], [join, run]]


# --- calls that are kept


def test_cancel_is_for_ones_own_calls() -> None:
    """Another client with the same matchtag keeps its stream."""
    tree = Tree(1)
    first, second = tree.client(0), tree.client(0)
    new = {"follow": True, "nobacklog": True}
    tags = [client.request("log.dmesg", new, flags=STREAMING) for client in (first, second)]
    first.request("log.cancel", {"matchtag": tags[0]})
    assert first.answers(tags[0])[-1].errnum == 61
    assert second.answers(tags[1]) == []


# --- kvs


def test_kvs() -> None:
    """Get, put, and watch as a stream, from any rank."""
    tree = Tree(7)
    writer, reader = tree.client(5), tree.client(6)
    assert reader.ask("kvs.get", {"key": "a"}).errnum == 2
    watch = reader.request("kvs.watch", {"key": "a"}, flags=STREAMING)
    for number, content in enumerate(({"x": [1]}, "text", None), start=1):
        assert value(writer.ask("kvs.put", {"key": "a", "value": content})) == {"version": number}
    writer.ask("kvs.put", {"key": "b", "value": 1})
    tree.settle()
    got = [unpack_object(answer.payload) for answer in reader.answers(watch)]
    assert got == [
        {"value": {"x": [1]}, "version": 1},
        {"value": "text", "version": 2},
        {"value": None, "version": 3},
    ]
    assert reader.ask("kvs.get", {"key": "a"}).errnum == 2
    assert value(reader.ask("kvs.get", {"key": "b"})) == {"value": 1, "version": 4}


def test_kvs_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The store has a size; a value that is replaced or taken away makes room."""
    monkeypatch.setattr("specwire.runtime.flux.services.kvs.MAX_STORE_OCTETS", 1000)
    client = Tree(1).client(0)
    puts = [
        ("a", "x" * 500),
        ("b", "x" * 500),
        ("a", None),
        ("b", "x" * 500),
        ("b", "x" * 600),
        ("c", "x" * 2_000_000),
    ]
    numbers = [client.ask("kvs.put", {"key": key, "value": content}).errnum for key, content in puts]
    assert numbers == [0, 28, 0, 0, 0, 28]


# --- the frame of services


class Careless(Service):
    """A service with faults."""

    __slots__ = ()

    @serves("silent")
    def silent(self, call: Call) -> None:
        """Forget to answer."""

    @serves("twice")
    def twice(self, call: Call) -> None:
        """Answer twice."""
        call.respond({"n": 1})
        call.respond({"n": 2})
        call.fail(22)


def test_engine_guards_one_final_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A built-in method that does not answer is answered for; one that answers twice is heard once."""
    monkeypatch.setattr("specwire.runtime.flux.registry.BUILT_IN", {"careless": Careless})
    client = Tree(1).client(0)
    assert client.ask("careless.silent").errnum == 38
    assert value(client.ask("careless.twice")) == {"n": 1}


def test_kept_calls_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """One stream too many is refused with EAGAIN."""
    monkeypatch.setattr("specwire.runtime.flux.services.service.MAX_KEPT", 1)
    client = Tree(1).client(0)
    new = {"follow": True, "nobacklog": True}
    client.request("log.dmesg", new, flags=STREAMING)
    tag = client.request("log.dmesg", new, flags=STREAMING)
    assert [answer.errnum for answer in client.answers(tag)] == [11]


def test_services_are_made_when_they_are_asked_for() -> None:
    """A broker that is only a stop on the way costs no more than it uses."""
    tree = Tree(3, settings=log_stays)
    tree.client(1).ask("broker.ping", {}, nodeid=2)
    built = {rank: sorted(engine.registry.pending()) for rank, engine in tree.engines.items()}
    assert built == {0: [], 1: [], 2: ["broker"]}
