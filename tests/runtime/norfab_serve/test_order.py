"""In which order a broker performs what its engine wants."""

from __future__ import annotations

from specwire.runtime.norfab.actions import Action, Ask, Fetch, Send, Stopped, Store
from specwire.runtime.norfab.commands import Disconnect, Post, Role
from specwire.runtime.norfab.serve.order import sort_out


def send(peer: bytes, number: int, role: Role = "worker") -> Send:
    return Send(peer, role, Post(f"j{number}", b"{}"))


def test_what_one_peer_is_sent_is_sent_together_and_in_order() -> None:
    sends = [
        send(b"w1", 1),
        send(b"w2", 1),
        send(b"c1", 1, "client"),
        send(b"w1", 2),
        send(b"w2", 2),
        send(b"w1", 3),
    ]
    assert by_peer(sends) == [
        send(b"w1", 1),
        send(b"w1", 2),
        send(b"w1", 3),
        send(b"w2", 1),
        send(b"w2", 2),
        send(b"c1", 1, "client"),
    ]


def test_records_go_first_and_the_end_comes_last() -> None:
    """A record does not wait for sockets, and nothing follows the last word."""
    goodbye = Send(b"w1", "worker", Disconnect("svc"))
    first, second = Store(1, ()), Store(2, ())
    fetch, ask, stopped = Fetch(1, "j1", "w1"), Ask(1, "svc", "task", b"[]", b"{}", ""), Stopped(False, "")
    wanted: list[Action] = [fetch, send(b"w1", 1), first, ask, goodbye, second, stopped]
    assert by_peer(wanted) == [first, second, send(b"w1", 1), goodbye, fetch, ask, stopped]


def test_a_worker_has_its_job_before_the_client_is_told() -> None:
    """What each of them is sent keeps its order, and what is to be kept goes first."""
    told, more = send(b"c1", 1, "client"), send(b"c1", 2, "client")
    assert workers_first([Store(1, ()), told, send(b"w1", 1), more]) == [
        Store(1, ()),
        send(b"w1", 1),
        told,
        more,
    ]
    stopped = Stopped(False, "")
    assert workers_first([told, stopped]) == [told, stopped], "the end comes last"
