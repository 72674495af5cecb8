"""Engine contract, and `StoryEngine`, which makes an engine of stories.

An *engine* is a peer without I/O: events and the time in, effects out. It has no socket, file,
thread, clock or randomness, so tests drive it directly, and a simulator runs many of them under one
clock.

A *story* is a generator that yields effects. It handles one event from beginning to end, including
the waits in between:

    def post(state: Broker, peer: PeerId, post: Post) -> Story:
        job = state.jobs.add(post, owner=peer)
        if failure := (yield from commit(job.record())):
            yield Send(peer, Response(job.uuid, 500, failure))
            return
        yield Send(peer, Response(job.uuid, 202))

State is dataclasses, and a story gets the state that it reads and changes. No story gets the
engine: it begins, wakes and cancels others by effects.

Surprises:

- A story runs until it suspends or ends, and no other story runs meanwhile. So the effects of one
  story are in its order, and state changes only at suspensions.
- A story that is begun or woken runs after the current one, in the order of `Fork` and `Wake`.
- A cancelled story is closed (`GeneratorExit`). Its ``finally`` blocks may change state, but not
  yield.
- The story of a `Called` answers the call itself. When it ends without a `Return`, the caller gets
  an `UnansweredError`.
- Commits are resumed in the order of their tickets, because the store commits in this order. Only a
  commit that failed may come earlier.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import count
from math import inf
from types import GeneratorType
from typing import Any, Protocol, get_args

import msgspec

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
    Stop,
    Story,
    Wait,
    Wake,
)
from specwire.runtime.kernel.events import Answered, Called, Committed, Event, PeerDisconnected, PeerId, Tick

_HOST_EFFECTS = frozenset(get_args(HostEffect))

STALE = 64
"""The heap of deadlines is rebuilt when it exceeds twice the number of waiting stories by this."""


class Engine(Protocol):
    """A peer without I/O."""

    def handle(self, event: Event, now: float) -> Iterable[HostEffect]:
        """Handle an event. The host takes all effects before it handles the next event.

        Args:
            now: seconds of a clock that does not go backwards, the same clock for all calls.
        """

    def deadline(self) -> float | None:
        """Return when the host must call `handle` with `Tick`; None for never."""


class MessageCodec(Protocol):
    """Frames to messages and back. It may keep state for each peer, such as the peer's dialect."""

    def decode(self, peer: PeerId, frames: list[bytes]) -> Iterable[Any]:
        """Return the messages in the frames; raises CodecError."""

    def encode(self, peer: PeerId, message: Any) -> Sequence[bytes]:
        """Return the frames of a message; raises CodecError."""


class PackageCodec:
    """MessageCodec of a generated package, such as ``specwire.generated.zre``.

    Args:
        limits: of the package's `decode`: `max_frames` and `max_octets`. A listener keeps the first
            frames of a message only, so a limit on frames is smaller than
            `ListenerSettings.max_frames`.
    """

    def __init__(self, package: Any, **limits: int) -> None:
        self._decode = partial(package.decode, **limits)

    def decode(self, peer: PeerId, frames: list[bytes]) -> Iterable[Any]:
        """Return the message; raises DecodeError."""
        return (self._decode(frames),)

    def encode(self, peer: PeerId, message: Any) -> Sequence[bytes]:
        """Return the frames of a message; raises EncodeError."""
        frames: list[bytes] = message.encode()
        return frames


class UnansweredError(Exception):
    """The story of a call has ended without an answer; `str()` is the reason."""


@dataclass(slots=True, eq=False)
class _Running:
    """A story that has not ended.

    Attributes:
        suspension: number of its current `Wait`; 0 while it waits for nothing else.
        asked: ticket of the `Ask` that it waits for.
        call: the call that it has to answer; 0 for none.
        ended: it has ended or was cancelled, and must not be resumed.
    """

    story: Story
    owner: Hashable | None = None
    suspension: int = 0
    key: Hashable | None = None
    asked: int = 0
    call: int = 0
    ended: bool = False


class StoryEngine:
    """Engine in which each event begins a story.

    Args:
        react: returns the story for an event. `Committed`, `Answered` and `Tick` are not passed to
            it.
    """

    def __init__(self, react: Callable[[Event], Story]) -> None:
        self._react = react
        self._ready: deque[tuple[_Running, Any]] = deque()
        self._current: _Running | None = None
        self._owned: dict[Hashable, dict[_Running, None]] = {}
        self._waiting: dict[Hashable, _Running] = {}
        self._commits: dict[int, _Running] = {}
        self._asked: dict[int, _Running] = {}
        self._deadlines: list[tuple[float, int, _Running]] = []
        self._numbers = count(1)

    @property
    def suspended(self) -> int:
        """Number of stories that wait."""
        held = (*self._waiting.values(), *self._commits.values(), *self._asked.values())
        return sum(not running.ended for running in held)

    def deadline(self) -> float | None:
        """Return the earliest `until` of a waiting story.

        Stories that a fault has kept from running are due at once.
        """
        if self._ready:
            return -inf
        deadlines = self._deadlines
        while deadlines and deadlines[0][1] != deadlines[0][2].suspension:
            heappop(deadlines)
        return deadlines[0][0] if deadlines else None

    def handle(self, event: Event, now: float) -> Iterator[HostEffect]:
        """Begin the story of an event, or resume those that waited for it, and yield their effects."""
        match event:
            case Committed(last=last, failures=failures):
                self._on_committed(last, dict(failures))
            case Answered(ticket=ticket):
                if (running := self._asked.pop(ticket, None)) is not None:
                    running.asked = 0
                    self._ready.append((running, event))
            case Tick():
                self._on_tick(now)
            case _:
                if isinstance(event, PeerDisconnected):
                    yield from self._cancel(event.peer)
                call = event.call if isinstance(event, Called) else 0
                self._ready.append((_Running(self._react(event), call=call), None))
        while self._ready:
            running, answer = self._ready.popleft()
            if not running.ended:
                self._current = running
                yield from self._advance(running, answer, now)

    def _advance(self, running: _Running, answer: Any, now: float) -> Iterator[HostEffect]:
        """Run a story until it suspends or ends. A value that is no effect raises TypeError in the story."""
        resume = send = running.story.send
        ended = True  # also where the story raises
        try:
            while True:
                effect = resume(answer)
                resume, answer = send, None
                match effect:
                    case Commit(records=records, refusable=refusable):
                        ticket = next(self._numbers)
                        self._commits[ticket] = running
                        ended = False
                        yield Commit(ticket, records, refusable)
                        return
                    case Ask():
                        ticket = running.asked = next(self._numbers)
                        self._asked[ticket] = running
                        ended = False
                        yield msgspec.structs.replace(effect, ticket=ticket)
                        return
                    case Wait(key=key, until=until):
                        self._suspend(running, key, until)
                        ended = False
                        return
                    case Now():
                        answer = now
                    case Wake(key=key, value=value):
                        self._wake(key, value)
                    case Fork(story=story, owner=owner):
                        self._begin(story, owner)
                    case Cancel(owner=owner):
                        yield from self._cancel(owner)
                    case _ if type(effect) not in _HOST_EFFECTS:
                        resume, answer = running.story.throw, TypeError(_fault_in_yield(effect))
                    case _:
                        yield effect
                        if isinstance(effect, DropPeer):
                            yield from self._cancel(effect.peer)
                        elif isinstance(effect, Stop):
                            self._cancel_all()
                        elif isinstance(effect, Return) and effect.call == running.call:
                            running.call = 0
        except StopIteration:
            if running.call:
                yield Return(running.call, error=UnansweredError("the engine has no answer"))
        except Exception as error:
            if running.call:
                yield Return(running.call, error=UnansweredError(f"a fault of specwire: {error!r}"))
            raise
        finally:
            self._current = None
            if ended:
                running.ended = True
                if running.owner is not None:
                    self._disown(running)

    def _begin(self, story: Story, owner: Hashable | None) -> None:
        running = _Running(story, owner)
        if owner is not None:
            self._owned.setdefault(owner, {})[running] = None
        self._ready.append((running, None))

    def _suspend(self, running: _Running, key: Hashable, until: float | None) -> None:
        assert key not in self._waiting, f"two stories wait for {key!r}"
        self._waiting[key] = running
        running.key, running.suspension = key, next(self._numbers)
        if until is not None:
            if len(self._deadlines) > 2 * len(self._waiting) + STALE:
                self._deadlines = [entry for entry in self._deadlines if entry[1] == entry[2].suspension]
                heapify(self._deadlines)
            heappush(self._deadlines, (until, running.suspension, running))

    def _wake(self, key: Hashable, value: Any) -> None:
        running = self._waiting.pop(key, None)
        if running is not None:
            running.suspension = 0
            self._ready.append((running, value))

    def _on_committed(self, last: int, failures: dict[int, str]) -> None:
        commits = self._commits
        for ticket, reason in failures.items():
            if (running := commits.pop(ticket, None)) is not None:
                self._ready.append((running, reason))
        while commits and (ticket := next(iter(commits))) <= last:
            self._ready.append((commits.pop(ticket), ""))

    def _on_tick(self, now: float) -> None:
        deadlines = self._deadlines
        while deadlines and deadlines[0][0] <= now:
            _, suspension, running = heappop(deadlines)
            if running.suspension == suspension:
                self._wake(running.key, TIMED_OUT)

    def _cancel(self, owner: Hashable) -> Iterator[CancelAsk]:
        owned = self._owned.pop(owner, ())
        tickets = [running.asked for running in owned if running.asked and running is not self._current]
        for running in owned:
            self._close(running)
        yield from map(CancelAsk, tickets)

    def _cancel_all(self) -> None:
        suspended = (*self._waiting.values(), *self._commits.values(), *self._asked.values())
        for running in (*suspended, *(running for running, _ in self._ready)):
            self._close(running)
        self._ready.clear()
        self._owned.clear()

    def _close(self, running: _Running) -> None:
        """Close a story that is not the current one."""
        if running is not self._current:
            running.ended = True
            if running.suspension:
                del self._waiting[running.key]
                running.suspension = 0
            if running.asked:
                del self._asked[running.asked]
                running.asked = 0
            running.story.close()

    def _disown(self, running: _Running) -> None:
        owned = self._owned.get(running.owner)
        if owned is not None:
            owned.pop(running, None)
            if not owned:
                del self._owned[running.owner]


def _fault_in_yield(effect: object) -> str:
    """Return why a story cannot yield a value that is no effect."""
    if isinstance(effect, GeneratorType):
        return (
            f"a story yields {effect.__name__}(…), which is a story: write `yield from {effect.__name__}(…)`"
        )
    return f"a story yields {effect!r}, which is no effect"
