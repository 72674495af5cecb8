"""Recorded conversations on sockets: each on a connection of its own, some at a time, and the outcome of all."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import msgspec

from specwire.generated.dialog import Dialog
from specwire.runtime.rehearsal.errors import RehearsalError
from specwire.runtime.rehearsal.language import Language
from specwire.runtime.rehearsal.lines import LOCAL, DealerLine, Line, open_local
from specwire.runtime.rehearsal.replay.comparing import Comparison, Difference, compare
from specwire.runtime.rehearsal.replay.nature import Ignored
from specwire.runtime.rehearsal.replay.part import Keys, Pace, Part
from specwire.runtime.rehearsal.replay.recording import Recording, Script
from specwire.runtime.transport.context import TransportContext
from specwire.runtime.transport.security import NULL, Security

KEPT = 100
"""Differences that are kept; beyond that they are counted."""

LONGEST_IDENTITY_OCTETS = 255


@dataclass(frozen=True, slots=True)
class Performance:
    """What is to be played, and how.

    Attributes:
        side: the letter of the side that is played.
        at_once: conversations at a time.
        identity: routing id of the connections, with a number behind it; None: the recorded one of a peer that goes by
            its name, and any for others.
        renews: say other keys than the recorded.
        mark: a number of this run, for new keys.
    """

    language: Language
    recording: Recording
    side: str
    endpoint: str
    pace: Pace
    ignored: Ignored = field(default_factory=Ignored)
    at_once: int = 16
    identity: str | None = None
    security: Security = NULL
    renews: bool = False
    mark: int = 0


class Outcome(msgspec.Struct):
    """What came of it; counts are of messages, pieces of one content together."""

    conversations: int = 0
    sent: int = 0
    skipped: int = 0
    recorded: int = 0
    live: int = 0
    same: int = 0
    missing: int = 0
    extra: int = 0
    differing: int = 0
    unreadable: int = 0
    stalls: int = 0
    stopped: int = 0
    lost: dict[str, int] = {}
    differences: list[Difference] = []

    @property
    def failed(self) -> bool:
        """Whether the live peer said anything else than it had."""
        return bool(self.missing or self.extra or self.differing or self.unreadable)

    def add(self, part: Part, comparison: Comparison) -> None:
        """Take one conversation."""
        self.conversations += 1
        self.sent += part.sent
        self.skipped += part.skipped
        self.stalls += part.stalls
        self.recorded += comparison.recorded
        self.live += comparison.live
        self.same += comparison.same
        self.unreadable += comparison.unreadable
        for difference in comparison.differences:
            self.missing += difference.kind == "missing"
            self.extra += difference.kind == "extra"
            self.differing += difference.kind == "differs"
            if len(self.differences) < KEPT:
                self.differences.append(difference)
        if part.lost_because:
            self.lost[part.lost_because] = self.lost.get(part.lost_because, 0) + 1


def choose_scripts(performance: Performance) -> list[Script]:
    """Return the conversations in which the side says something.

    Raises:
        RehearsalError: there is none.
    """
    scripts = performance.recording.scripts
    sides = sorted({said.sender for script in scripts for said in script.said})
    chosen = [script for script in scripts if any(said.sender == performance.side for said in script.said)]
    if not chosen:
        raise RehearsalError(f"nobody said anything as {performance.side}; there are {', '.join(sides)}")
    return chosen


async def play(performance: Performance, outcome: Outcome, stop: asyncio.Event) -> None:
    """Play all conversations into `outcome`; after `stop` no more are begun, and those under way end.

    Raises:
        TransportError: the endpoint or the credentials are none.
        RehearsalError: nothing of this side is recorded, or the protocol is not spoken there.
    """
    context = TransportContext()
    waiting = list(enumerate(choose_scripts(performance), start=1))[::-1]

    async def seat() -> None:
        while waiting and not stop.is_set():
            number, script = waiting.pop()
            await _Player(performance, context, outcome, script, number, stop).run()

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(performance.at_once, len(waiting))):
                group.create_task(seat())
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    finally:
        outcome.stopped += len(waiting)
        await context.close()


class _Player:
    """Plays one conversation as the side that connects."""

    def __init__(
        self,
        performance: Performance,
        context: TransportContext,
        outcome: Outcome,
        script: Script,
        number: int,
        stop: asyncio.Event,
    ) -> None:
        self._performance, self._context, self._outcome = performance, context, outcome
        self._script, self._number, self._stop = script, number, stop
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        self._part = begin_part(performance, script, self._loop.time())

    async def run(self) -> None:
        """Play to the end, and add what came of it to the outcome."""
        line = await self._open()
        try:
            while line is not None and not self._part.over and not self._stop.is_set():
                for frames in self._part.act(self._loop.time()):
                    line.send(frames)
                if not self._part.over:
                    await self._wait(self._part.wakes_at() - self._loop.time())
        finally:
            if line is not None:
                line.close()
        conclude_part(self._performance, self._part, self._outcome)

    async def _open(self) -> Line | None:
        endpoint = self._performance.endpoint
        if endpoint.startswith(LOCAL):
            try:
                package = self._performance.language.package
                return await open_local(package, endpoint, on_message=self._take, on_lost=self._lose)
            except OSError as error:
                self._lose(f"no connection is possible ({error.strerror or error})")
                return None
        return DealerLine(
            self._context,
            endpoint,
            identity=self._identity(),
            security=self._performance.security,
            on_message=self._take,
            on_lost=self._lose,
        )

    def _identity(self) -> bytes:
        """Return the routing id; for a named peer what it was known by, else libzmq may choose."""
        if self._performance.identity is not None:
            return f"{self._performance.identity}-{self._number}".encode()
        if not self._performance.language.habits.named:
            return b""
        try:
            recorded = bytes.fromhex(self._script.peer)
        except ValueError:
            return b""
        # One that libzmq made up begins with NUL, and nobody else may bring such a one.
        return recorded if recorded[:1] != b"\0" and len(recorded) <= LONGEST_IDENTITY_OCTETS else b""

    def _take(self, frames: Sequence[bytes]) -> None:
        self._part.hear([bytes(frame) for frame in frames], self._loop.time())
        self._changed.set()

    def _lose(self, reason: str) -> None:
        self._part.lost(reason)
        self._changed.set()

    async def _wait(self, seconds: float) -> None:
        self._changed.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, seconds)):
                await self._changed.wait()


def begin_part(performance: Performance, script: Script, now: float) -> Part:
    """Return the engine of one conversation."""
    key = _dialog_of(performance.language, script, performance.side).key
    keys = Keys(key if performance.renews else (), performance.mark)
    return Part(performance.language, script, performance.side, performance.pace, now, keys)


def conclude_part(performance: Performance, part: Part, outcome: Outcome) -> None:
    """Compare what was answered, and add it to the outcome."""
    language, script = performance.language, part.script
    key = _dialog_of(language, script, performance.side).key
    outcome.add(
        part, compare(language, key, script.conversation, part.recorded, part.live, performance.ignored)
    )


def _dialog_of(language: Language, script: Script, side: str) -> Dialog:
    """Return the dialog between the two sides that speak here."""
    senders = {said.sender for said in script.said}
    dialogs: dict[str, Any] = language.machine.DIALOGS
    names = [name for name, dialog in dialogs.items() if side in dialog.roles]
    if not names:
        raise RehearsalError(
            f"{language.name} has no role {side!r}; it has {', '.join(language.machine.ROLES)}"
        )
    for name in names:
        if senders <= set(dialogs[name].roles):
            return language.dialog(name)
    return language.dialog(names[0])
