"""Recorded and live answers against each other: what differs by nature, and what does not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from specwire.generated import filemq, flux, norfab
from specwire.runtime.rehearsal.habits import habits_of
from specwire.runtime.rehearsal.language import Language
from specwire.runtime.rehearsal.replay.comparing import Comparison, compare, first_difference
from specwire.runtime.rehearsal.replay.nature import Ignored, mask_text, plain_fields


def answer(tag: int, payload: object, **fields: Any) -> flux.Response:
    return flux.Response(topic="a.b", matchtag=tag, payload=json.dumps(payload).encode() + b"\0", **fields)


def compared(
    recorded: list[Any],
    live: list[Any],
    package: Any = flux,
    key: tuple[str, ...] = ("matchtag",),
    *ignored: str,
) -> Comparison:
    before, now = ([message.encode() for message in side] for side in (recorded, live))
    return compare(Language(package), key, "c1", before, now, Ignored(frozenset(ignored)))


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("by c95b7aad-0e0c-4cd4-a5f1-57a5a1d8b2f0", "by <uuid>"),
        ("job 5f0c1d6be2f04d3c9b2f0c9f36b1a7de", "job <uuid>"),
        ("2026-11-20T18:12:16.078850Z said", "<time> said"),
        ("at tcp://127.0.0.1:5555", "at <endpoint>"),
        ("since 1790000000.5", "since <number>"),
        ("15.2(4)M of 5", "15.2(4)M of 5"),
        ("a3db5c13ff90a36963278c6a39e4ee3c22e2a436", "a3db5c13ff90a36963278c6a39e4ee3c22e2a436"),
    ],
)
def test_uuids_times_and_places_are_masked_and_nothing_else(text: str, masked: str) -> None:
    """A digest of content is content."""
    assert mask_text(text) == masked


def test_numbers_in_json_are_masked_by_their_name_and_look() -> None:
    found = {
        "pid": 4,
        "rank": 3,
        "time.tv_sec": 5,
        "seq": 7,
        "value": 0.25,
        "boot": 1_790_000_000,
        "ok": True,
    }
    fields = plain_fields(answer(1, found), habits_of("flux"), Ignored())
    assert fields["payload"] == {
        "pid": "<number>",
        "rank": 3,
        "time.tv_sec": "<number>",
        "seq": 7,
        "value": "<number>",
        "boot": "<number>",
        "ok": True,
    }


def test_fields_have_the_names_of_the_grammar() -> None:
    """Where `type` is a word of Python."""
    control, flux_habits = flux.Control(type_=1, status=2), habits_of("flux")
    assert plain_fields(control, flux_habits, Ignored())["type"] == 1
    assert "type" not in plain_fields(control, flux_habits, Ignored(frozenset({"Control.type"})))


def test_answers_to_several_requests_come_in_any_order() -> None:
    one, two = answer(1, {"n": 1}), answer(2, {"n": 2})
    assert compared([one, two], [two, one]).differences == []
    # What has no key is one sequence.
    events = [flux.Event(topic="x", sequence=1), flux.Event(topic="y", sequence=2)]
    assert compared(events, events[::-1]).same == 1


def test_a_difference_is_told_by_its_path() -> None:
    before, now = answer(1, {"list": [1, {"a": 2}]}), answer(1, {"list": [1, {"a": 3}]})
    (found,) = compared([before], [now]).differences
    assert (found.kind, found.message, found.key) == ("differs", "Response", [1])
    assert (found.field, found.recorded, found.live) == ("payload.list[1].a", "2", "3")
    assert compared([before], [now], flux, ("matchtag",), "Response.payload.list").differences == []
    assert compared([before], [now], flux, ("matchtag",), "*.payload").differences == []


def test_missing_and_extra_answers_are_told() -> None:
    one, two = answer(1, {}), answer(2, {})
    assert [found.kind for found in compared([one, two], [one]).differences] == ["missing"]
    assert [found.kind for found in compared([one], [one, two]).differences] == ["extra"]


def test_a_pulse_is_no_answer() -> None:
    pulse = flux.Event(topic="heartbeat.pulse", sequence=4)
    assert compared([answer(1, {})], [pulse, answer(1, {}), pulse]).differences == []


def test_content_is_compared_as_a_whole() -> None:
    def pieces(*cuts: bytes) -> list[filemq.Cheezburger]:
        found, at = [], 0
        for number, chunk in enumerate(cuts):
            found.append(
                filemq.Cheezburger(
                    sequence=number,
                    operation=1,
                    filename="/f",
                    offset=at,
                    headers=(("size", "6"),),
                    chunk=chunk,
                )
            )
            at += len(chunk)
        return found

    same = compared(pieces(b"ab", b"cdef", b""), pieces(b"abcdef", b""), filemq, ())
    assert (same.recorded, same.live, same.same, same.differences) == (1, 1, 1, [])
    (found,) = compared(pieces(b"ab", b"cdef"), pieces(b"abcdeX"), filemq, ()).differences
    assert (found.field, found.recorded, found.live) == ("chunk", b"abcdef".hex(), b"abcdeX".hex())


def test_what_cannot_be_read_is_counted() -> None:
    language = Language(flux)
    found = compare(language, ("matchtag",), "c1", [], [[b"noise"]], Ignored())
    assert found.unreadable == 1
    assert [difference.kind for difference in found.differences] == ["unreadable"]


def test_the_first_difference_of_nested_values() -> None:
    assert first_difference({"a": 1, "b": {"c": [1, 2]}}, {"a": 1, "b": {"c": [1, 3]}}) == ("b.c[1]", 2, 3)
    assert first_difference({"a": 1}, {}) == ("a", 1, None)


def test_a_last_word_by_which_a_peer_leaves_is_no_answer() -> None:
    """One in the middle is: the live peer left where the recorded one went on."""
    greeted, left = filemq.OhaiOk(), filemq.Kthxbai()
    assert compared([greeted, left], [greeted], filemq, ()) == Comparison(1, 1, 1, 0, [])
    assert compared([greeted], [greeted, left], filemq, ()) == Comparison(1, 1, 1, 0, [])
    asked, stopped = norfab.GetWorker(client_address=b"c", uuid="1", body=b"{}"), norfab.Disconnect()
    assert compared([asked, stopped], [asked], norfab, ("uuid",)) == Comparison(1, 1, 1, 0, [])
    found = compared([greeted, filemq.HugzOk(), greeted], [greeted, left, greeted], filemq, ())
    assert [(difference.kind, difference.message) for difference in found.differences] == [
        ("extra", "Kthxbai")
    ]
