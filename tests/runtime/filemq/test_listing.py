"""Listings of a server's files: the option LIST, as the server answers it and as a client uses it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import pytest

from specwire.generated import filemq
from specwire.generated.errors import DecodeError
from specwire.generated.filemq import (
    Cheezburger,
    Hugz,
    HugzOk,
    Icanhaz,
    IcanhazOk,
    Kthxbai,
    Ohai,
    OhaiOk,
    Operation,
    Rtfm,
    Srsly,
)
from specwire.runtime.filemq.codec import Command
from specwire.runtime.filemq.outflow import BATCH
from specwire.runtime.filemq.preview import SERVER, ListedFile, ListFiles, ListingState, react
from specwire.runtime.kernel.effects import Connect, HostEffect, Return, Send, Stop
from specwire.runtime.kernel.engine import StoryEngine
from specwire.runtime.kernel.events import (
    Called,
    Event,
    MessageMalformed,
    MessageReceived,
    PeerDisconnected,
    Stopping,
    Tick,
)
from tests.runtime.filemq.server_driver import (
    LASTING,
    RESYNC,
    ServerDriver,
    connect,
    content,
    entry,
    peered,
    sent,
    subscription,
)

LIST = ("LIST", "1")
ATTRIBUTES = ("ATTRIBUTES", "1")
A, B = "A" * 40, "B" * 40


def step(sequence: int, name: str, offset: int, *headers: tuple[str, str], chunk: bytes = b"") -> Cheezburger:
    return Cheezburger(
        sequence=sequence,
        operation=Operation.CREATE,
        filename=name,
        offset=offset,
        headers=headers,
        chunk=chunk,
    )


def listed(sequence: int, name: str, size: int, sha1: str, left: int) -> Cheezburger:
    """Return what lists one file."""
    return step(sequence, name, size, ("size", str(size)), ("sha-1", sha1), ("left", str(left)))


def end(sequence: int, path: str) -> Cheezburger:
    """Return what ends a listing."""
    return step(sequence, path, 0, ("left", "0"))


# ---- the server


def test_server_lists_files_without_credit_and_subscribes_to_nothing() -> None:
    driver = peered(entry("/a", 7, A), entry("/d/b", 0, B), path=None, credit=1)
    assert sent(driver.handle(subscription("/", (LIST,)))) == [
        IcanhazOk(),
        listed(0, "/a", 7, A, 2),
        listed(1, "/d/b", 0, B, 1),
        end(2, "/"),
    ]
    assert driver.credit() == 1
    assert driver.peering().describe(0.0).subscriptions == ()
    assert content(driver.publish(entry("/new", 0))) == []


def test_server_lists_what_the_path_covers() -> None:
    driver = peered(entry("/a", 1, A), entry("/ab", 2, B), path=None)
    assert content(driver.handle(subscription("/a/", (LIST,)))) == [listed(0, "/a", 1, A, 1), end(1, "/a")]
    assert content(driver.handle(subscription("/none", (LIST,)))) == [end(2, "/none")]


def test_server_lists_empty_folders_for_those_who_ask() -> None:
    driver = peered(entry("/d/", 0, A), entry("/f", 0, A), path=None)
    assert content(driver.handle(subscription("/", (LIST,)))) == [listed(0, "/f", 0, A, 1), end(1, "/")]
    assert content(driver.handle(subscription("/", (LIST, ATTRIBUTES)))) == [
        listed(2, "/d/", 0, A, 2),
        listed(3, "/f", 0, A, 1),
        end(4, "/"),
    ]


def test_server_begins_a_listing_before_it_answers_the_next_command() -> None:
    """A client recognizes by this that the server lists files. Long listings wait for room."""
    files = [entry(f"/{number:03}", 1, A) for number in range(BATCH + 1)]
    driver = peered(*files, path=None)
    effects = driver.handle(subscription("/", (LIST,)), Hugz())
    assert [type(command) for command in sent(effects)] == [IcanhazOk, *[Cheezburger] * BATCH, HugzOk]
    driver.withdraw("/032")
    assert content(driver.make_room()) == [end(BATCH, "/")]


def test_newer_request_replaces_a_listing() -> None:
    driver = peered(*[entry(f"/{number:03}", 1, A) for number in range(2 * BATCH)], path=None)
    driver.handle(subscription("/", (LIST,)))
    driver.handle(subscription("/063", (LIST,)))
    assert content(driver.make_room()) == [listed(BATCH, "/063", 1, A, 1), end(BATCH + 1, "/063")]


def test_subscriber_gets_a_listing_beside_its_changes() -> None:
    driver = ServerDriver(entry("/a", 0, A), timers=LASTING)
    connect(driver)
    effects = driver.handle(subscription("/", (LIST,)), subscription("/", (RESYNC,)))
    whole = step(2, "/a", 0, ("size", "0"), ("sha-1", A))
    assert content(effects) == [listed(0, "/a", 0, A, 1), end(1, "/"), whole]


def test_server_refuses_a_listing_like_a_subscription() -> None:
    driver = peered(entry("/a"), path=None, authorise=lambda user, path: "is secret")
    assert sent(driver.handle(subscription("/", (LIST,)))) == [Srsly(reason="/ is secret")]
    driver = peered(entry("/a"), path=None, enclose=lambda path, marks: f"has the inbox with {marks}")
    refused = sent(driver.handle(subscription("/", (LIST, ("INSIDE", "mark")))))
    assert refused == [Srsly(reason="/ has the inbox with mark")]


# ---- the client


class ClientDriver:
    """A client that lists files, driven by hand.

    Attributes:
        now: the time, which a test sets.
    """

    def __init__(self, *paths: str) -> None:
        self.now = 0.0
        state = ListingState({"heartbeat": 1.0, "expiry": 4.0})
        self._engine = StoryEngine(partial(react, state))
        self.opened = self.present(Called(1, ListFiles("tcp://host:1", paths or ("/",))))

    def present(self, event: Event) -> list[HostEffect]:
        return [*self._engine.handle(event, self.now)]

    def hear(self, *commands: Command) -> list[HostEffect]:
        return [effect for command in commands for effect in self.present(MessageReceived(SERVER, command))]

    def tick(self, now: float) -> list[HostEffect]:
        self.now = now
        due = self._engine.deadline()
        return self.present(Tick()) if due is not None and due <= now else []


def said(effects: Iterable[HostEffect]) -> list[Command]:
    return [effect.message for effect in effects if isinstance(effect, Send)]


def result(effects: Iterable[HostEffect]) -> Any:
    """Return the result of the call, or the text of its error."""
    [returned] = [effect for effect in effects if isinstance(effect, Return)]
    return returned.value if returned.error is None else str(returned.error)


def request(path: str) -> Icanhaz:
    return Icanhaz(path=path, options=(LIST,), cache=())


def failure(reason: str) -> str:
    return f"the files of tcp://host:1 cannot be listed: {reason}"


def test_client_lists_each_path() -> None:
    driver = ClientDriver("/a", "/b")
    assert driver.opened == [Connect(SERVER, "tcp://host:1"), Send(SERVER, Ohai())]
    assert said(driver.hear(OhaiOk())) == [request("/a")]
    assert said(driver.hear(IcanhazOk())) == [Hugz()]
    assert said(driver.hear(listed(0, "/a/2", 7, A, 2), listed(1, "/a/1", 0, B.lower(), 1), HugzOk())) == []
    assert said(driver.hear(end(2, "/a"))) == [request("/b")]
    assert said(driver.hear(IcanhazOk())) == []  # the server knows listings
    effects = driver.hear(end(3, "/b"))
    assert said(effects) == [Kthxbai()]
    assert result(effects) == [ListedFile("/a/1", 0, B), ListedFile("/a/2", 7, A)]
    assert driver.present(Stopping("done")) == [Stop("done")]


def test_empty_listing_differs_from_a_server_that_lists_nothing() -> None:
    driver = ClientDriver()
    driver.hear(OhaiOk(), IcanhazOk())
    assert result(driver.hear(end(0, "/"))) == []
    driver = ClientDriver()
    driver.hear(OhaiOk(), IcanhazOk())
    # A server that took this for a subscription may send changes.
    driver.hear(step(0, "/new", 0, ("size", "0"), ("sha-1", A)))
    unknown = "it does not list its files: it is no specwire server, or an older version"
    assert result(driver.hear(HugzOk())) == failure(unknown)


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (MessageReceived(SERVER, Srsly(reason="/ is secret")), "/ is secret"),
        (MessageReceived(SERVER, Rtfm(reason="no")), "no"),
        (MessageReceived(SERVER, Kthxbai()), "the server said KTHXBAI"),
        (PeerDisconnected(SERVER, "no connection is possible"), "no connection is possible"),
    ],
)
def test_client_ends_with_the_reason(event: Event, reason: str) -> None:
    driver = ClientDriver()
    driver.hear(OhaiOk())
    assert result(driver.present(event)) == failure(reason)


def test_client_ends_for_a_malformed_command() -> None:
    driver = ClientDriver()
    with pytest.raises(DecodeError) as caught:
        filemq.decode([b"no command"])
    reason = result(driver.present(MessageMalformed(SERVER, caught.value)))
    assert reason == failure(str(caught.value))


def test_client_ends_for_a_command_out_of_turn() -> None:
    driver = ClientDriver()
    [returned] = driver.hear(IcanhazOk())
    assert isinstance(returned, Return) and "S:IcanhazOk" in str(returned.error)


def test_client_waits_for_progress_for_a_bounded_time() -> None:
    """Signs of life alone are none."""
    driver = ClientDriver()
    driver.tick(3.9)
    driver.hear(OhaiOk())
    assert driver.tick(7.8) == []
    assert said(driver.hear(Hugz())) == [HugzOk()]
    assert result(driver.tick(7.9)) == failure("no answer for 4 s")


def test_client_shows_life_during_a_long_listing() -> None:
    driver = ClientDriver()
    driver.hear(OhaiOk(), IcanhazOk(), listed(0, "/a", 1, A, 9), HugzOk())
    assert driver.tick(0.9) == []
    assert said(driver.tick(1.0)) == [Hugz()]
    assert driver.tick(3.0) == []  # the one before is not answered yet
    driver.hear(HugzOk(), listed(1, "/b", 1, A, 8))
    assert said(driver.tick(4.0)) == [Hugz()]


def test_client_omits_listed_files_without_size_or_digest() -> None:
    driver = ClientDriver()
    driver.hear(OhaiOk(), IcanhazOk(), step(0, "/a", 1, ("size", "1"), ("left", "2")))
    driver.hear(step(1, "/b", 1, ("size", "x"), ("sha-1", A), ("left", "1")))
    assert result(driver.hear(end(2, "/"))) == []
