"""One side of a recorded conversation, played again without sockets and with a virtual clock."""

from __future__ import annotations

from typing import Any

from specwire.generated import filemq, flux
from specwire.runtime.rehearsal.language import Language
from specwire.runtime.rehearsal.replay.part import Keys, Pace, Part
from specwire.runtime.rehearsal.replay.recording import Said, Script

SECOND = 1_000_000_000


def script(*lines: tuple[float, str, Any]) -> Script:
    """Return a conversation of messages, each with its second and sender."""
    said = [Said(int(at * SECOND), sender, message.encode()) for at, sender, message in lines]
    return Script("c1", "peer", said)


def piece(offset: int, octets: int) -> filemq.Cheezburger:
    return filemq.Cheezburger(
        sequence=1, operation=1, filename="/f", offset=offset, headers=(), chunk=bytes(octets)
    )


FETCH = script(
    (10.0, "C", filemq.Ohai()),
    (10.5, "S", filemq.OhaiOk()),
    (11.0, "C", filemq.Nom(credit=100)),
    (12.0, "S", piece(0, 40)),
    (12.5, "S", piece(40, 60)),
    (13.0, "C", filemq.Kthxbai()),
)


def part_of(recorded: Script, side: str = "C", pace: Pace | None = None) -> Part:
    return Part(Language(filemq), recorded, side, pace or Pace(patience_s=2.0), 0.0)


def said(part: Part, now: float) -> list[Any]:
    return [filemq.decode(frames) for frames in part.act(now)]


def test_each_line_waits_for_what_was_heard_before_it() -> None:
    part = part_of(FETCH)
    assert said(part, 0.0) == [filemq.Ohai()]
    assert said(part, 1.0) == []
    part.hear(filemq.OhaiOk().encode(), 1.0)
    assert said(part, 1.0) == [filemq.Nom(credit=100)]
    part.hear(piece(0, 40).encode(), 1.1)
    assert said(part, 1.1) == []
    part.hear(piece(40, 60).encode(), 1.2)
    assert said(part, 1.2) == [filemq.Kthxbai()]
    assert part.over
    assert part.live == part.recorded


def test_what_comes_after_the_recording_is_not_compared() -> None:
    """A recording that ends before an answer came does not say that none comes."""
    cut = script((10.0, "C", filemq.Ohai()), (10.5, "S", filemq.OhaiOk()), (11.0, "C", filemq.Nom(credit=1)))
    part = part_of(cut)
    said(part, 0.0)
    part.hear(filemq.OhaiOk().encode(), 0.0)
    assert said(part, 0.0) == [filemq.Nom(credit=1)]
    part.hear(filemq.Rtfm(reason="no").encode(), 0.1)
    assert part.live == part.recorded == [filemq.OhaiOk().encode()]


def test_nobody_waits_for_a_peer_to_leave() -> None:
    """A recorded server that was stopped said so to its clients; the live one runs on."""
    stopped = script((10.0, "C", filemq.Ohai()), (10.5, "S", filemq.OhaiOk()), (11.0, "S", filemq.Kthxbai()))
    part = part_of(stopped)
    said(part, 0.0)
    part.hear(filemq.OhaiOk().encode(), 0.1)
    assert said(part, 0.1) == []
    assert part.over
    assert part.stalls == 0


def test_a_peer_that_leaves_in_the_middle_is_waited_for() -> None:
    """What was said after that was said to one who had left."""
    left = script((10.0, "C", filemq.Ohai()), (10.5, "S", filemq.Kthxbai()), (11.0, "C", filemq.Ohai()))
    part = part_of(left)
    assert said(part, 0.0) == [filemq.Ohai()]
    assert said(part, 1.0) == []
    part.hear(filemq.Kthxbai().encode(), 1.0)
    assert said(part, 1.0) == [filemq.Ohai()]
    assert part.over
    assert part.stalls == 0


def test_content_counts_by_its_octets_and_not_by_its_pieces() -> None:
    part = part_of(FETCH)
    said(part, 0.0)
    part.hear(filemq.OhaiOk().encode(), 0.0)
    said(part, 0.0)
    part.hear(piece(0, 100).encode(), 0.0)
    assert said(part, 0.0) == [filemq.Kthxbai()]


def test_what_does_not_come_is_waited_for_once() -> None:
    """The next line does not wait again for what was given up before it."""
    part = part_of(FETCH)
    said(part, 0.0)
    assert part.wakes_at() == 2.0
    assert said(part, 2.0) == [filemq.Nom(credit=100)]
    part.hear(piece(0, 100).encode(), 2.5)
    assert said(part, 2.5) == [filemq.Kthxbai()]
    assert part.stalls == 1


def test_as_recorded_the_time_between_lines_passes_too() -> None:
    part = part_of(FETCH, pace=Pace(speed=2.0))
    said(part, 0.0)
    part.hear(filemq.OhaiOk().encode(), 0.1)
    assert said(part, 0.4) == []
    assert part.wakes_at() == 0.5
    assert said(part, 0.5) == [filemq.Nom(credit=100)]


def test_a_rate_is_the_most() -> None:
    lines = script(*((float(n), "C", filemq.Nom(credit=n)) for n in range(1, 5)))
    part = part_of(lines, pace=Pace(rate=8.0))
    assert [len(part.act(tick / 16)) for tick in range(8)] == [1, 0, 1, 0, 1, 0, 1, 0]


def test_a_sign_of_life_is_answered_when_it_comes_and_not_when_it_came() -> None:
    lines = script(
        (0.0, "C", filemq.Ohai()),
        (1.0, "S", filemq.OhaiOk()),
        (2.0, "S", filemq.Hugz()),
        (2.0, "C", filemq.HugzOk()),
        (3.0, "C", filemq.Kthxbai()),
    )
    part = part_of(lines)
    assert said(part, 0.0) == [filemq.Ohai()]
    part.hear(filemq.Hugz().encode(), 0.1)
    assert said(part, 0.1) == [filemq.HugzOk()]
    part.hear(filemq.OhaiOk().encode(), 0.2)
    assert said(part, 0.2) == [filemq.Kthxbai()]
    assert part.live == part.recorded == [filemq.OhaiOk().encode()]
    assert part.skipped == 1


def test_a_sign_of_life_that_nobody_asked_for_is_played() -> None:
    part = part_of(script((0.0, "C", filemq.HugzOk()), (1.0, "C", filemq.Ohai())))
    assert said(part, 0.0) == [filemq.HugzOk(), filemq.Ohai()]
    assert part.skipped == 0


def test_the_server_can_be_played_too() -> None:
    part = part_of(FETCH, side="S")
    assert said(part, 0.0) == []
    part.hear(filemq.Ohai().encode(), 0.1)
    assert said(part, 0.1) == [filemq.OhaiOk()]


def test_a_lost_connection_ends_it() -> None:
    part = part_of(FETCH)
    said(part, 0.0)
    part.lost("the connection was lost")
    assert (part.over, part.lost_because, said(part, 9.0)) == (True, "the connection was lost", [])


def test_what_is_no_message_is_played_as_it_was() -> None:
    said_then = [Said(0, "C", [b"noise"]), Said(0, "S", [b"more noise"])]
    part = part_of(Script("c1", "", said_then))
    assert part.act(0.0) == [[b"noise"]]
    assert part.recorded == [[b"more noise"]]


def test_new_keys_are_the_same_for_the_same() -> None:
    keys = Keys(("matchtag",), 7)
    tags = []
    for tag in (90, 91, 90, 0):
        message = flux.Request(topic="a", matchtag=tag)
        renewed = flux.decode(keys.renew(message, message.encode()))
        assert isinstance(renewed, flux.Request)
        tags.append(renewed.matchtag)
    assert tags == [1, 2, 1, 0]
