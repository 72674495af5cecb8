"""Random conversations, without sockets and with a virtual clock."""

from __future__ import annotations

from collections import deque

import pytest

from specwire.generated import filemq, flux, norfab
from specwire.runtime.rehearsal.conversation import Improviser
from specwire.runtime.rehearsal.manner import Manner
from specwire.runtime.rehearsal.stage import Stage
from tests.runtime.rehearsal.staging import TALK, Desk, open_conversation, stage_of

PAIRS = [
    ("filemq", "C", "S", "peering"),
    ("libfilemq", "C", "S", "peering"),
    ("flux", "C", "S", "rpc"),
    ("cmb1", "C", "S", "rpc"),
    ("cmb1_json", "C", "S", "rpc"),
    ("norfab", "C", "B", "client"),
    ("norfab", "W", "B", "worker"),
    ("norfab_ascii", "C", "B", "client"),
    ("norfab_ascii", "W", "B", "worker"),
    ("zre", "P", "R", "traffic"),
]
"""Every dialog that there is, with its two sides."""


def let_talk(one: Stage, other: Stage, dialog: str) -> tuple[Improviser, Improviser]:
    """Have both sides talk to each other until both are done; each message is under way for a while.

    The first begins, as who connects does: in a phase that either may leave, two that begin at once would differ about it.
    """
    sides = (open_conversation(one, dialog), open_conversation(other, dialog))
    lanes: tuple[deque[list[bytes]], deque[list[bytes]]] = (deque(), deque())
    now = 0.0
    for turn in range(4000):
        for index, side in enumerate(sides):
            if index == 0 or other.tally.received:
                lanes[index].extend(side.act(now))
            lane = lanes[1 - index]
            for _ in range(min(len(lane), one.dice.randrange(3))):
                side.hear(lane.popleft(), now)
        if turn == 1500 or one.budget.spent(now):
            sides[0].finish(now)
        if sides[0].over:  # until then it may be owed an answer
            sides[1].finish(now)
        if all(side.over for side in sides) and not any(lanes):
            break
        now += 0.01
    assert all(side.over for side in sides)
    return sides


@pytest.mark.parametrize(("protocol", "one", "other", "dialog"), PAIRS)
def test_two_that_make_it_up_keep_to_the_machine(protocol: str, one: str, other: str, dialog: str) -> None:
    """Whatever one says, the other finds in order and answers: no violation, nothing unreadable, nothing missing."""
    first, second = stage_of(protocol, one, 1), stage_of(protocol, other, 2)
    let_talk(first, second, dialog)
    for stage in (first, second):
        assert stage.tally.findings == []
    assert sum(first.tally.sent.values()) > 0
    assert sum(first.tally.received.values()) <= sum(second.tally.sent.values())
    if first.tally.ends.unfinished:
        assert first.tally.unanswered == 0


def test_one_seed_says_the_same_again() -> None:
    def story() -> list[list[bytes]]:
        conversation = open_conversation(stage_of("cmb1", "C", 5))
        return [frames for tick in range(20) for frames in conversation.act(tick / 10)]

    assert story() == story()
    assert len(story()) > 5


def test_what_a_session_refuses_is_a_violation_of_the_other_side() -> None:
    desk = Desk(stage_of("filemq", "C"))
    assert desk.said() == [filemq.Ohai()]
    desk.tell(filemq.OhaiOk(), filemq.OhaiOk())
    (finding,) = desk.stage.tally.findings
    assert (finding.conversation, finding.kind, finding.message) == (1, "violation", "OhaiOk")
    assert finding.said.startswith("S:OhaiOk in state USE: expected ")
    assert finding.frames == ["aaa304"]
    assert desk.stage.tally.failed


def test_what_cannot_be_read_is_told_with_its_octets() -> None:
    desk = Desk(stage_of("filemq", "C"))
    desk.said()
    desk.tell([b"\xaa\xa3\x04more"])
    (finding,) = desk.stage.tally.findings
    assert (finding.kind, finding.frames) == ("unreadable", ["aaa3046d6f7265"])


def test_the_other_sides_requests_are_answered_at_once() -> None:
    """A sign of life is wanted within the second, however slowly we talk."""
    desk = Desk(stage_of("filemq", "C", manner=Manner(rate=0.001)))
    desk.said()
    desk.tell(filemq.OhaiOk(), filemq.Hugz(), filemq.Hugz())
    assert desk.conversation.act(desk.now) == [filemq.HugzOk().encode()] * 2


def test_an_answer_has_the_key_and_the_way_of_its_request() -> None:
    """A worker's response finds its client by the address, and its job by the uuid."""
    stage = stage_of("norfab", "W", manner=Manner(rate=0.001))
    desk = Desk(stage)
    desk.said()
    desk.tell(norfab.PostWorker(client_address=b"c1", uuid="job-1", body=b"{}"))
    (answer,) = desk.conversation.act(desk.now)
    response = norfab.decode(answer)
    assert isinstance(response, norfab.ResponseWorker)
    assert (response.client_address, response.uuid) == (b"c1", "job-1")


def test_a_request_without_answer_is_told_with_its_key() -> None:
    desk = Desk(stage_of("flux", "C", given=["Request.matchtag=7", "Request.flags=0"]))
    while not any(isinstance(message, flux.Request) for message in desk.said()):
        pass
    desk.conversation.finish(desk.now)
    desk.now += TALK.patience_s
    desk.said()
    (missing,) = desk.stage.tally.unanswered_requests
    assert (missing.message, missing.key) == ("Request", {"matchtag": 7})
    assert not desk.stage.tally.failed


def test_a_step_of_the_dialog_without_answer_is_missing_too() -> None:
    desk = Desk(stage_of("filemq", "C"))
    assert desk.said() == [filemq.Ohai()]
    desk.conversation.finish(desk.now)
    desk.now += TALK.patience_s
    desk.said()
    assert [missing.message for missing in desk.stage.tally.unanswered_requests] == ["Ohai"]


def test_who_does_not_take_its_turn_is_given_up() -> None:
    """Another conversation may go better; this one cannot go on."""
    desk = Desk(stage_of("filemq", "C"))
    assert desk.said() == [filemq.Ohai()]
    desk.now += TALK.patience_s
    assert desk.said() == []
    assert desk.conversation.over
    assert [missing.message for missing in desk.stage.tally.unanswered_requests] == ["Ohai"]
    assert desk.stage.tally.ends.given_up == 1


def test_what_was_under_way_when_we_closed_is_late_and_no_violation() -> None:
    desk = Desk(stage_of("filemq", "C"))
    desk.said()
    desk.tell(filemq.OhaiOk())
    desk.conversation.finish(desk.now)
    assert desk.said() == [filemq.Kthxbai()]
    desk.tell(filemq.Cheezburger(sequence=1, operation=1, filename="/a", offset=0, headers=(), chunk=b""))
    assert (desk.stage.tally.late, desk.stage.tally.findings) == (1, [])


def test_who_closes_says_no_more() -> None:
    desk = Desk(stage_of("filemq", "C"))
    desk.said()
    desk.tell(filemq.OhaiOk(), filemq.Kthxbai(), filemq.IcanhazOk())
    assert desk.conversation.over
    assert [finding.message for finding in desk.stage.tally.findings] == ["IcanhazOk"]


def test_an_error_closes_and_whatever_follows_answers_what_was_under_way() -> None:
    desk = Desk(stage_of("filemq", "C"))
    desk.said()
    desk.tell(filemq.OhaiOk(), filemq.Srsly(reason="no"), filemq.Rtfm(reason="who are you"))
    assert (desk.stage.tally.late, desk.stage.tally.findings) == (1, [])
    assert desk.stage.tally.ends.by_them == 1


def test_a_lost_connection_is_counted_with_its_reason() -> None:
    desk = Desk(stage_of("filemq", "C"))
    desk.said()
    desk.conversation.lost("the connection was lost")
    assert desk.conversation.over
    assert dict(desk.stage.tally.losses) == {"the connection was lost": 1}


def test_no_more_is_asked_than_the_window_has_room_for() -> None:
    desk = Desk(stage_of("flux", "C", given=["Request.flags=0"]))
    ticks = (tick / 100 for tick in range(round(TALK.patience_s * 90)))
    said = [flux.decode(frames) for now in ticks for frames in desk.conversation.act(now)]
    asked = [message for message in said if isinstance(message, flux.Request) and message.matchtag != 0]
    assert len(asked) == TALK.window


def test_a_budget_is_for_all_conversations() -> None:
    stage = stage_of("flux", "C", manner=Manner(messages=5, rate=1000.0))
    for _ in range(3):
        conversation = open_conversation(stage)
        for tick in range(100):
            conversation.act(tick / 10)
    assert sum(stage.tally.sent.values()) == 5
    assert stage.budget.spent(0.0)
