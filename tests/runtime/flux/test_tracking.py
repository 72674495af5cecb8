"""Pending requests against a plain list of them."""

from __future__ import annotations

from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st

from specwire.generated.flux import Request
from specwire.runtime.flux.answering import end, respond
from specwire.runtime.flux.flags import STREAMING
from specwire.runtime.flux.tracking import Tracker
from tests.examples import examples

REQUESTS = st.builds(
    Request,
    routes=st.sampled_from([("a",), ("a", "b"), ("a", "c"), ("b", "c")]),
    topic=st.sampled_from(["x.do", "y.do"]),
    flags=st.sampled_from([0, STREAMING]),
    matchtag=st.integers(0, 2),
)
STEPS = st.lists(st.tuples(st.sampled_from(["add", "add", "go on", "end", "lose"]), REQUESTS), max_size=40)


@settings(max_examples=examples(200))
@given(STEPS, st.booleans())
def test_tracker_is_a_list_of_what_is_pending(steps: list[tuple[str, Request]], by_hop: bool) -> None:
    """Each request is finished once, those with equal keys in order; a lost way takes what came on it."""
    tracker, plain = Tracker(), list[Request]()
    for step, request in steps:
        same = [
            other for other in plain if (other.routes, other.matchtag) == (request.routes, request.matchtag)
        ]
        match step:
            case "add":
                assert tracker.add(request, (request.routes or ())[:1] if by_hop else None)
                plain.append(request)
            case "go on":
                assert tracker.finish(respond(request)) == bool(same)
                if same and not (same[0].flags & request.flags & STREAMING):
                    plain.remove(same[0])
            case "end":
                assert tracker.finish(end(request)) == bool(same)
                if same:
                    plain.remove(same[0])
            case _:
                way, service = (request.routes or ())[:1], (request.topic or "")[0]
                taken = tracker.take_from(way, service)
                gone = [o for o in plain if (o.routes or ())[:1] == way and (o.topic or "")[0] == service]
                assert sorted(map(repr, taken)) == sorted(map(repr, gone))
                for other in gone:
                    plain.remove(other)
        assert len(tracker) == len(plain)
    assert sorted(map(repr, tracker.take_all())) == sorted(map(repr, plain))
    assert len(tracker) == 0


@settings(max_examples=examples(120))
@given(st.lists(st.tuples(st.booleans(), REQUESTS), max_size=60), st.booleans())
def test_room_is_shared_out(steps: list[tuple[bool, Request]], by_hop: bool) -> None:
    """A request is refused where its origin has as much as there is room left, and nowhere else."""
    room, pending = 6, list[tuple[tuple[str, ...], Request]]()
    with mock.patch("specwire.runtime.flux.tracking.MAX_TRACKED", room):
        tracker = Tracker()
        for adds, request in steps:
            origin = (request.routes or ())[:1] if by_hop else request.routes or ()
            if adds:
                own = sum(other == origin for other, _ in pending)
                assert tracker.add(request, origin if by_hop else None) == (own < room - len(pending))
                if own < room - len(pending):
                    pending.append((origin, request))
            elif pending:
                origin, request = pending.pop(0)
                assert tracker.finish(end(request))


def test_payloads_are_not_kept() -> None:
    """What is pending costs little, however much was asked."""
    tracker = Tracker()
    tracker.add(Request(routes=("a",), topic="x.y", payload=b"x" * 1_000_000, matchtag=1))
    (request,) = tracker.take_all()
    assert (request.payload, request.topic, request.matchtag) == (None, "x.y", 1)
