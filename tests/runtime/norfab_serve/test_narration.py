"""The broker's log: every event that matters as a line, nothing in it forged, floods bounded; and actions in order."""

from __future__ import annotations

import asyncio

import pytest

from specwire.runtime.norfab.actions import Stopped
from specwire.runtime.norfab.commands import Keepalive
from specwire.runtime.norfab.events import (
    Dropped,
    JobAccepted,
    JobEnded,
    JobRedispatched,
    Refused,
    StoreFailed,
    WorkerGone,
    WorkerReady,
)
from specwire.runtime.norfab.serve.agenda import AT_A_TIME, FEW, Agenda
from specwire.runtime.norfab.serve.events import Began, BrokerEvent, Ended, Managed, Noticed, TurnedAway
from specwire.runtime.norfab.serve.narration import Narrator
from specwire.runtime.norfab.serve.order import Mail, Work


def tell(*events: BrokerEvent, jobs: bool = False) -> list[str]:
    """Return the lines of these events, all of one moment."""
    lines: list[str] = []
    narrator = Narrator(lines.append, lambda: 0.0, jobs=jobs)
    for event in events:
        narrator.tell(event)
    return lines


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (
            Began(("tcp://a:1", "tcp://b:2"), 1234),
            "listening on tcp://a:1, tcp://b:2; 1,234 jobs from before",
        ),
        (Ended(restart=True, reason="asked"), "restarting: asked"),
        (Ended(restart=False, reason="asked"), "ended: asked"),
        (Noticed("moved aside"), "moved aside"),
        (TurnedAway("a key"), "somebody was not let in: a key"),
        (Refused(b"c1", "no"), "refused c1: no"),
        (Dropped(b"c1", "late", "too late"), "dropped a message of c1 (late): too late"),
        (
            Managed(b"c1", "ada", "mmi.service.broker", "shutdown", "all", allowed=True),
            "c1 asks for shutdown",
        ),
        (
            Managed(b"c1", "ada", "mmi.service.worker", "restart", "w1", allowed=False),
            "c1 may not ask for restart of w1",
        ),
        (WorkerReady("w1", "svc", again=False), "worker w1 is ready for svc"),
        (WorkerReady("w1", "svc", again=True), "worker w1 is ready for svc again"),
        (WorkerGone("w1", "svc", "silent"), "worker w1 of svc is gone: silent"),
        (StoreFailed(7, "full"), "a record could not be stored: full"),
        (JobRedispatched("j", "w1", "w2", 2), "job j goes from w1 to w2, attempt 2"),
        (JobEnded("j", "w1", 500, "lost"), "job j failed at w1: lost"),
        (JobEnded("j", "", 408, "late"), "job j failed at no worker: late"),
    ],
)
def test_events_as_lines(event: BrokerEvent, line: str) -> None:
    """Each says what, who and why."""
    assert tell(event) == [line]


def test_jobs_that_go_well_are_told_where_that_is_wanted() -> None:
    """A busy broker's log is not about them."""
    events = (JobAccepted("j", "ada", b"c1", "svc", "add", ("w1",)), JobEnded("j", "w1", 200, ""))
    assert tell(*events) == []
    assert tell(*events, jobs=True) == ["job j of c1: svc:add", "job j ended at w1 with 200"]


def test_names_from_the_wire_forge_no_line_and_no_terminal() -> None:
    """Newlines and escapes are shown, and endless reasons cut."""
    [line] = tell(Refused(b"c\n12:00 all is well\x1b[2J\xff", "r" * 10_000))
    assert "\n" not in line
    assert "\x1b" not in line
    assert "\\xff" in line
    assert len(line) < 600


def test_flood_of_refusals_is_counted() -> None:
    """Twenty lines in ten seconds, and workers' lines are not lost for them."""
    lines = tell(*[Refused(b"evil", "no")] * 1000, WorkerReady("w1", "svc", again=False))
    assert len(lines) == 21
    assert lines[-1] == "worker w1 is ready for svc"


def actions(first: int, last: int) -> list[Work]:
    """Return actions that can be told from each other."""
    return [Stopped(False, str(number)) for number in range(first, last)]


def test_actions_are_performed_in_order_and_at_once() -> None:
    """What an action adds comes after what was there."""

    async def story() -> None:
        done: list[str] = []

        def do(action: Work) -> None:
            assert isinstance(action, Stopped)
            done.append(action.reason)
            if action.reason == "0":
                agenda.add(actions(10, 12))

        agenda = Agenda(do)
        agenda.add(actions(0, 3))
        assert done == ["0", "1", "2", "10", "11"]

    asyncio.run(story())


def test_what_many_actions_send_gathers() -> None:
    """Around a few nothing is done; a fault in the middle does not keep back what was gathered."""
    done: list[str] = []

    def do(action: Work) -> None:
        assert isinstance(action, Stopped)
        done.append(action.reason)
        if action.reason == "5":
            raise RuntimeError("a fault")

    agenda = Agenda(do, lambda: done.append("gather"), lambda: done.append("settle"))
    agenda.add(actions(0, FEW))
    assert done == ["0", "1", "2", "3"]
    done.clear()
    with pytest.raises(RuntimeError):
        agenda.add(actions(1, 1 + FEW + 1))
    assert done == ["gather", "1", "2", "3", "4", "5", "settle"]


def test_what_comes_of_sending_waits_for_the_next_turn() -> None:
    """A peer that is found to be gone, for example: what others are told of it does not overtake what they were sent."""

    async def story() -> None:
        done: list[str] = []

        def settle() -> None:
            if "more" not in done:
                done.append("more")
                agenda.add(actions(9, 10))
            done.append("settle")

        agenda = Agenda(lambda action: done.append(getattr(action, "reason", "")), lambda: None, settle)
        agenda.add(actions(0, FEW + 1))
        assert done == ["0", "1", "2", "3", "4", "more", "settle"]
        while "9" not in done:
            await asyncio.sleep(0)

    asyncio.run(story())


def test_long_agenda_lets_others_have_a_turn() -> None:
    """More than a turn's worth is done in several, in order."""

    async def story() -> None:
        done: list[str] = []
        agenda = Agenda(lambda action: done.append(getattr(action, "reason", "")))
        agenda.add(actions(0, 2 * AT_A_TIME + 1))
        assert len(done) == AT_A_TIME
        agenda.add(actions(2 * AT_A_TIME + 1, 2 * AT_A_TIME + 3))
        while len(done) < 2 * AT_A_TIME + 3:
            await asyncio.sleep(0)
        assert done == [str(number) for number in range(2 * AT_A_TIME + 3)]

    asyncio.run(story())


def test_what_a_mail_has_counts_one_by_one() -> None:
    """So that many long ones are no longer a turn than many short ones."""

    async def story() -> None:
        done: list[Work] = []
        agenda = Agenda(done.append)
        mails: list[Work] = [
            Mail(b"%d" % number, "worker", [Keepalive("svc")] * (AT_A_TIME // 2)) for number in range(5)
        ]
        agenda.add(mails)
        assert done == mails[:2]
        while len(done) < 5:
            await asyncio.sleep(0)
        assert done == mails

    asyncio.run(story())


def test_fault_in_an_action_costs_no_other() -> None:
    """It is raised, and the rest is done in the next turn."""

    async def story() -> None:
        done: list[str] = []

        def do(action: Work) -> None:
            assert isinstance(action, Stopped)
            if action.reason == "1":
                raise RuntimeError("a fault")
            done.append(action.reason)

        agenda = Agenda(do)
        with pytest.raises(RuntimeError):
            agenda.add(actions(0, 4))
        while len(done) < 3:
            await asyncio.sleep(0)
        assert done == ["0", "2", "3"]

    asyncio.run(story())
