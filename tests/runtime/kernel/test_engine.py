"""Stories: suspension, order of effects, cancellation, deadlines; and random outcomes against a plain model."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specwire.runtime.kernel.commits import Commit
from specwire.runtime.kernel.effects import (
    TIMED_OUT,
    Ask,
    Cancel,
    CancelAsk,
    DropPeer,
    Fork,
    HostEffect,
    Now,
    Return,
    Send,
    Stop,
    Story,
    Wait,
    Wake,
    ask,
    commit,
)
from specwire.runtime.kernel.engine import StoryEngine, UnansweredError
from specwire.runtime.kernel.events import (
    Answered,
    Called,
    Committed,
    Event,
    Noticed,
    PeerDisconnected,
    PeerId,
    RoomMade,
    Stopping,
    Tick,
)
from specwire.runtime.kernel.store import Failure

PEER = PeerId("front", b"peer")
OTHER = PeerId("front", b"other")


def send(text: str) -> Send:
    """Return an effect that is told apart by its text."""
    return Send(PEER, text)


def engine_of(story: Callable[[str], Story]) -> StoryEngine:
    """Return an engine in which a notice begins a story, with the value as its argument."""

    def react(event: Event) -> Story:
        match event:
            case Noticed(value=request):
                yield from story(request)
            case Stopping(reason=reason):
                yield Stop(reason)

    return StoryEngine(react)


def handle(engine: StoryEngine, event: Event, now: float = 0.0) -> list[HostEffect]:
    """Return all effects of an event."""
    return list(engine.handle(event, now))


def begin(engine: StoryEngine, request: str = "", now: float = 0.0) -> list[HostEffect]:
    """Begin a story."""
    return handle(engine, Noticed(request), now)


def texts(effects: Iterable[HostEffect]) -> list[str]:
    """Return the texts of all messages that are sent."""
    return [effect.message for effect in effects if isinstance(effect, Send)]


def test_commit_suspends_until_it_is_durable() -> None:
    """Nothing after the commit happens before `Committed`."""

    def story(request: str) -> Story:
        yield send("before")
        failure = yield from commit("record", "another")
        yield send(failure or "durable")

    engine = engine_of(story)
    assert begin(engine) == [send("before"), Commit(1, ("record", "another"))]
    assert engine.suspended == 1
    assert handle(engine, Committed(0)) == []
    assert handle(engine, Committed(1)) == [send("durable")]
    assert engine.suspended == 0


def test_failed_commit_resumes_with_the_reason() -> None:
    """A refusable commit may fail before an older one is durable."""

    def story(request: str) -> Story:
        failure = yield from commit(request, refusable=request == "new")
        yield send(f"{request}: {failure or 'durable'}")

    engine = engine_of(story)
    assert begin(engine, "old") == [Commit(1, ("old",))]
    assert begin(engine, "new") == [Commit(2, ("new",), True)]
    assert texts(handle(engine, Committed(0, (Failure(2, "full"),)))) == ["new: full"]
    assert texts(handle(engine, Committed(2))) == ["old: durable"]


def test_commits_resume_in_order_of_their_tickets() -> None:
    """Also where one event reports all of them."""

    def story(request: str) -> Story:
        yield from commit(request)
        yield send(request)

    engine = engine_of(story)
    for request in "abc":
        begin(engine, request)
    assert texts(handle(engine, Committed(3))) == ["a", "b", "c"]


def test_ask_returns_the_answer_or_why_there_is_none() -> None:
    """The ticket of the effect is that of the event."""

    def story(request: str) -> Story:
        answered = yield from ask(request)
        yield send(f"{answered.value} {answered.failure}")

    engine = engine_of(story)
    assert begin(engine, "x") == [Ask("x", 1)]
    assert begin(engine, "y") == [Ask("y", 2)]
    assert texts(handle(engine, Answered(2, 42))) == ["42 "]
    assert texts(handle(engine, Answered(1, None, "gone"))) == ["None gone"]
    assert handle(engine, Answered(7, 1)) == []


def test_wake_resumes_after_the_current_story() -> None:
    """The story that wakes runs on until it suspends; values arrive with the wake-up."""

    def story(request: str) -> Story:
        if request == "wait":
            value = yield Wait("key")
            yield send(f"woken by {value}")
        else:
            yield Wake("nobody")
            yield Wake("key", 7)
            yield send("first")

    engine = engine_of(story)
    assert begin(engine, "wait") == []
    assert texts(begin(engine, "wake")) == ["first", "woken by 7"]
    assert texts(begin(engine, "wake")) == ["first"]


def test_two_stories_cannot_wait_for_one_key() -> None:
    """A lost wake-up would be silent."""

    def story(request: str) -> Story:
        yield Wait("key")

    engine = engine_of(story)
    begin(engine)
    with pytest.raises(AssertionError, match="two stories wait for 'key'"):
        begin(engine)


def test_forks_run_in_their_order() -> None:
    """After the story that begins them."""

    def child(name: str) -> Story:
        yield send(name)

    def story(request: str) -> Story:
        yield Fork(child("a"))
        yield Fork(child("b"))
        yield send("parent")

    assert texts(begin(engine_of(story))) == ["parent", "a", "b"]


def test_deadlines() -> None:
    """The earliest one is told; a wake-up removes it; `Now` is the time of the event."""

    def story(request: str) -> Story:
        woken = yield Wait(request, float(request))
        now = yield Now()
        yield send(f"{request} {'late' if woken is TIMED_OUT else woken} at {now:g}")

    engine = engine_of(story)
    assert engine.deadline() is None
    for request in ("30", "10", "20"):
        begin(engine, request)
    assert engine.deadline() == 10.0
    assert handle(engine, Tick(), 9.9) == []
    assert texts(handle(engine, Tick(), 20.0)) == ["10 late at 20", "20 late at 20"]
    assert engine.deadline() == 30.0


def test_deadlines_of_woken_stories_take_no_memory() -> None:
    """A thousand calls that are answered in time leave less than a thousand entries."""

    def story(request: str) -> Story:
        if request == "wake":
            yield Wake("key", True)
        else:
            yield Wait("key", 1e9)

    engine = engine_of(story)
    for _ in range(1000):
        begin(engine, "wait")
        begin(engine, "wake")
    assert engine.deadline() is None
    assert len(engine._deadlines) < 100


@dataclass
class Cleanup:
    """What stories of an owner have done."""

    closed: list[str] = field(default_factory=list)

    def story(self, name: str, suspend: Story) -> Story:
        """Suspend, and note the end."""
        try:
            yield from suspend
            yield send(f"{name} went on")
        finally:
            self.closed.append(name)


def suspensions() -> dict[str, Story]:
    """Return a story for each way to suspend."""

    def by_commit() -> Story:
        yield from commit("record")

    def by_ask() -> Story:
        yield from ask("request")

    def by_wait() -> Story:
        yield Wait("key", 5.0)

    return {"commit": by_commit(), "ask": by_ask(), "wait": by_wait()}


@pytest.mark.parametrize("how", ["cancel", "disconnected", "drop", "stop"])
def test_cancelled_stories_never_go_on(how: str) -> None:
    """However they are suspended, and although the answer comes later. ``finally`` runs at once."""
    cleanup = Cleanup()
    owner = PEER if how in ("disconnected", "drop") else "owner"

    def story(request: str) -> Story:
        if request == "begin":
            for name, suspend in suspensions().items():
                yield Fork(cleanup.story(name, suspend), owner)
        elif how == "drop":
            yield DropPeer(PEER)
        else:
            yield Cancel(owner)

    engine = engine_of(story)
    commits = begin(engine, "begin")
    assert [type(effect) for effect in commits] == [Commit, Ask]
    match how:
        case "disconnected":
            handle(engine, PeerDisconnected(OTHER, "gone"))
            assert not cleanup.closed
            handle(engine, PeerDisconnected(PEER, "gone"))
        case "stop":
            assert handle(engine, Stopping("end")) == [Stop("end")]
        case _:
            begin(engine, "end")
    assert sorted(cleanup.closed) == ["ask", "commit", "wait"]
    assert engine.suspended == 0 and engine.deadline() is None
    late = [*handle(engine, Committed(9)), *handle(engine, Answered(2, 1)), *handle(engine, Tick(), 9.0)]
    assert late == []


@pytest.mark.parametrize("how", ["cancel", "disconnected", "drop"])
def test_request_of_a_cancelled_story_is_cancelled(how: str) -> None:
    """At the host. Only a story that waits for an answer has one."""

    def asking(times: int) -> Story:
        for number in range(times):
            yield from ask(number)
        yield Wait(times)

    def story(request: str) -> Story:
        match request:
            case "begin":
                for times in range(3):
                    yield Fork(asking(times), PEER)
                yield Fork(asking(3), OTHER)
            case "drop":
                yield DropPeer(PEER)
            case "cancel":
                yield Cancel(PEER)

    engine = engine_of(story)
    assert begin(engine, "begin") == [Ask(0, 2), Ask(0, 3), Ask(0, 4)]  # waits have numbers, too
    assert handle(engine, Answered(2)) == []
    assert handle(engine, Answered(3)) == [Ask(1, 6)]
    effects = begin(engine, how) if how != "disconnected" else handle(engine, PeerDisconnected(PEER, "gone"))
    dropped = [DropPeer(PEER)] if how == "drop" else []
    assert effects == [*dropped, CancelAsk(6)]
    assert handle(engine, Answered(6)) == []
    assert handle(engine, Answered(4)) != [], "the story of another owner goes on"


def test_request_that_stop_cancels_needs_no_effect() -> None:
    """The host ends all handlers."""

    def story(request: str) -> Story:
        yield from ask(request)

    engine = engine_of(story)
    begin(engine)
    assert handle(engine, Stopping("end")) == [Stop("end")]
    assert engine.suspended == 0


def test_other_events_begin_stories() -> None:
    """Such as room and changes outside."""
    seen: list[Event] = []

    def react(event: Event) -> Story:
        seen.append(event)
        yield Send(PEER, "seen")

    engine = StoryEngine(react)
    events: list[Event] = [RoomMade(PEER, 10), Noticed("a change")]
    assert [texts(handle(engine, event)) for event in events] == [["seen"], ["seen"]]
    assert seen == events


def test_story_that_cancels_its_owner_goes_on() -> None:
    """The others of this owner do not, those that have not begun included."""
    cleanup = Cleanup()

    def canceller() -> Story:
        yield Fork(cleanup.story("sibling", suspensions()["wait"]), "owner")
        yield Cancel("owner")
        yield send("went on")

    def story(request: str) -> Story:
        yield Fork(canceller(), "owner")

    engine = engine_of(story)
    assert texts(begin(engine)) == ["went on"]
    assert cleanup.closed == []  # it had not begun, so nothing was to be undone
    assert engine.suspended == 0


def test_fault_costs_one_story() -> None:
    """Its effects until then are kept, and the stories after it run with the next event."""

    def faulty() -> Story:
        yield send("before the fault")
        raise RuntimeError("fault")

    def healthy() -> Story:
        yield send("healthy")

    def story(request: str) -> Story:
        yield Fork(faulty())
        yield Fork(healthy())

    engine = engine_of(story)
    effects: list[HostEffect] = []
    with pytest.raises(RuntimeError, match="fault"):
        effects.extend(engine.handle(Noticed(""), 0.0))
    assert texts(effects) == ["before the fault"]
    assert engine.deadline() == -inf, "the other story is due"
    assert texts(handle(engine, Tick())) == ["healthy"]
    assert engine.deadline() is None


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (commit("record"), "a story yields commit(…), which is a story: write `yield from commit(…)`"),
        (Called(1, ""), "a story yields Called(call=1, request=''), which is no effect"),
    ],
)
def test_other_values_raise_where_they_are_yielded(value: object, reason: str) -> None:
    """The error is raised in the story, so its trace has the line, and ``finally`` blocks run."""
    cleaned_up: list[str] = []

    def story(request: str) -> Story:
        try:
            yield value  # type: ignore[misc]
        finally:
            cleaned_up.append(request)

    engine = engine_of(story)
    with pytest.raises(TypeError) as raised:
        begin(engine, "request")
    assert str(raised.value) == reason
    assert raised.traceback[-1].name == "story"
    assert cleaned_up == ["request"]
    assert engine.suspended == 0


def called(story: Story) -> StoryEngine:
    """Return an engine in which this is the story of every call."""
    return StoryEngine(lambda event: story)


@pytest.mark.parametrize("suspends", [False, True])
def test_call_without_an_answer_fails(suspends: bool) -> None:
    """When its story ends, at once or later."""

    def story() -> Story:
        if suspends:
            yield Wait("a moment", 5.0)
        yield send("end")

    engine = called(story())
    effects = handle(engine, Called(7, "request"))
    if suspends:
        assert effects == []
        effects = handle(engine, Tick(), 5.0)
    sent, answer = effects
    assert sent == send("end")
    assert isinstance(answer, Return) and answer.call == 7
    assert isinstance(answer.error, UnansweredError) and str(answer.error) == "the engine has no answer"


def test_call_with_a_fault_fails() -> None:
    """The caller has the reason; the host gets the exception."""

    def story() -> Story:
        yield send("before")
        raise RuntimeError("bad")

    effects: list[HostEffect] = []
    with pytest.raises(RuntimeError, match="bad"):
        for effect in called(story()).handle(Called(7, "request"), 0.0):
            effects.append(effect)  # noqa: PERF402 - those before the exception are kept
    sent, answer = effects
    assert sent == send("before") and isinstance(answer, Return)
    assert str(answer.error) == "a fault of specwire: RuntimeError('bad')"


def test_call_is_answered_once() -> None:
    """What the story does after its answer does not matter; an answer to another call is not its own."""

    def story() -> Story:
        yield Return(6, "other")
        yield Return(7, "own")
        yield send("after")

    effects = handle(called(story()), Called(7, "request"))
    assert effects == [Return(6, "other"), Return(7, "own"), send("after")]


@given(st.lists(st.sampled_from(["durable", "full", "cancel"]), max_size=12), st.data())
def test_random_outcomes(outcomes: list[str], data: st.DataObject) -> None:
    """Each job is acknowledged once if its record is durable, refused once if not, and silent if cancelled.

    The outcomes arrive in any grouping; failures may come before older tickets are durable.
    """
    jobs = range(len(outcomes))

    def job(number: int) -> Story:
        failure = yield from commit(number)
        yield Return(number, failure or "durable")

    def story(request: str) -> Story:
        if request.startswith("cancel"):
            yield Cancel(int(request.split()[1]))
        else:
            yield Fork(job(int(request)), int(request))

    engine = engine_of(story)
    tickets: dict[int, int] = {}
    for number in jobs:
        (effect,) = begin(engine, str(number))
        assert isinstance(effect, Commit) and effect.records == (number,)
        tickets[number] = effect.ticket
    returned: dict[int, list[str]] = {number: [] for number in jobs}

    def note(effects: Iterable[HostEffect]) -> None:
        for effect in effects:
            assert isinstance(effect, Return)
            returned[effect.call].append(effect.value)

    failed = [number for number in jobs if outcomes[number] == "full"]
    for number in jobs:
        if outcomes[number] == "cancel":
            note(begin(engine, f"cancel {number}"))
    for number in data.draw(st.permutations(failed)):
        note(handle(engine, Committed(0, (Failure(tickets[number], "full"),))))
    last = 0
    while last < len(tickets):
        last = data.draw(st.integers(last + 1, len(tickets)))
        note(handle(engine, Committed(last)))
    expected = {"durable": ["durable"], "full": ["full"], "cancel": []}
    assert returned == {number: expected[outcomes[number]] for number in jobs}
    assert engine.suspended == 0
