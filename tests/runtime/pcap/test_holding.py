"""What waits for its protocol is bounded, over all connections."""

from __future__ import annotations

import pytest

from specwire.runtime.pcap.holding import Held, Holding
from specwire.runtime.pcap.rows import Row


def held(octets: int = 1) -> Held:
    return Held(Row(frames=(bytes(octets),)), is_listener=False)


def test_messages_come_out_in_their_order_and_once() -> None:
    holding, items = Holding(), [held(1), held(2), held(3)]
    assert [holding.hold(number, item) for number, item in zip((1, 2, 1), items, strict=True)] == [[], [], []]
    assert holding.release(1) == [items[0], items[2]] and holding.release(1) == []
    assert holding.release(2) == [items[1]]


def test_where_all_hold_too_many_octets_the_oldest_waits_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("specwire.runtime.pcap.holding.MAX_OCTETS", 10)
    holding, items = Holding(), [held(4), held(4), held(4)]
    assert holding.hold(1, items[0]) == holding.hold(2, items[1]) == []
    assert holding.hold(3, items[2]) == [items[0]]
    again = held()
    assert holding.hold(1, again) == [again], "a connection that was given up waits no more"
    big = held(11)
    assert holding.hold(4, big) == [items[1], items[2], big]
    assert holding.hold(5, held(10)) == [], "what came out is not counted any more"


def test_where_all_hold_too_many_messages_the_oldest_waits_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("specwire.runtime.pcap.holding.MAX_ROWS", 2)
    holding, items = Holding(), [held(), held(), held()]
    assert [holding.hold(number, item) for number, item in enumerate(items)] == [[], [], [items[0]]]


def test_connection_that_ended_may_wait_anew() -> None:
    """Its number is forgotten with it."""
    holding = Holding()
    for _ in range(33):
        holding.hold(1, held())
    assert holding.release(1) == [] and holding.hold(1, held()) == []
