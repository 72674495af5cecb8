"""One side of a recorded conversation, played again.

`Part` is an engine: frames and the time in, frames out. It says the messages of its side in their order, each when the
other side has said as much as it had in the recording by then, or has let the patience pass; with a pace, no earlier
than after the time that lay between. What a pulse asks for is answered when it comes, and not when it came.

What the other side has said is counted in messages; content that comes in pieces in octets, for the pieces may be of other
sizes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from specwire.generated.errors import DecodeError
from specwire.runtime.rehearsal.language import Language
from specwire.runtime.rehearsal.replay.recording import Script


class Pace(msgspec.Struct, frozen=True):
    """When to speak.

    Attributes:
        rate: at most so many messages a second and conversation; None: no bound.
        speed: so many times as fast as recorded; None: as soon as the other side has said what it had.
        patience_s: how long to wait for what the other side had said.
    """

    rate: float | None = None
    speed: float | None = None
    patience_s: float = 5.0


class Heard(NamedTuple):
    """How much the other side has said."""

    messages: int = 0
    octets: int = 0

    def reaches(self, other: Heard) -> bool:
        """Whether this is at least as much."""
        return self.messages >= other.messages and self.octets >= other.octets


class _Line(msgspec.Struct, frozen=True):
    frames: list[bytes]
    after: Heard
    gap_s: float


class Part:
    """Plays `side` of `script`.

    Args:
        new_keys: in place of the key of each request another one, where the live peer may know the recorded.
        now: the time in seconds, as everywhere here.

    Attributes:
        live: what the other side said, but for pulses.
        recorded: what it had said, with keys as we say them now.
        over: everything was said, and what was to come has come, or the patience is over.
    """

    def __init__(
        self, language: Language, script: Script, side: str, pace: Pace, now: float, keys: Keys | None = None
    ) -> None:
        self._language, self._pace = language, pace
        self.script = script
        self.live: list[list[bytes]] = []
        self.recorded: list[list[bytes]] = []
        self.sent = self.skipped = self.stalls = 0
        self.lost_because = ""
        self.over = False
        self._lines: list[_Line] = []
        self._all = self._heard = Heard()
        self._forgiven = Heard()
        self._urgent: list[list[bytes]] = []
        self._read(side, keys or Keys(()))
        self._next = 0
        self._said_at = self._waits_since = now

    def hear(self, frames: Sequence[bytes], now: float) -> None:
        """Take what the other side says; once this is over nothing any more, for how the recording went on nobody knows."""
        if self.over:
            return
        message = self._decode(frames)
        if message is not None and self._language.habits.is_beat(message):
            answer = self._language.habits.beat_answers.get(type(message).__name__)
            if answer is not None:
                self._urgent.append(self._language.package.MESSAGES[answer]().encode())
            return
        self.live.append(list(frames))
        self._heard = _more(self._language, self._heard, message)
        self._waits_since = now

    def lost(self, reason: str) -> None:
        """The connection is gone."""
        if not self.over:
            self.over, self.lost_because = True, reason

    def act(self, now: float) -> list[list[bytes]]:
        """Return the frames of what is to be said now."""
        said, self._urgent = self._urgent, []
        while not self.over and self._may_go_on(now):
            if self._next == len(self._lines):
                self.over = True
                break
            said.append(self._lines[self._next].frames)
            self._next += 1
            self.sent += 1
            self._said_at = self._waits_since = now
        return said

    def wakes_at(self) -> float:
        """Return when `act` is to be called next, where nothing comes before."""
        patient = self._waits_since + self._pace.patience_s
        return self._due() if self._has_heard() else max(patient, self._due())

    def _may_go_on(self, now: float) -> bool:
        if now < self._due():
            return False
        if self._has_heard():
            return True
        if now < self._waits_since + self._pace.patience_s:
            return False
        self._forgive()
        return True

    def _due(self) -> float:
        """Return when the next line comes, as far as our own pace says."""
        if self._next == len(self._lines):
            return self._said_at
        slowest = 1 / self._pace.rate if self._pace.rate and self.sent else 0.0
        recorded = self._lines[self._next].gap_s / self._pace.speed if self._pace.speed else 0.0
        return self._said_at + max(slowest, recorded)

    def _wanted(self) -> Heard:
        after = self._lines[self._next].after if self._next < len(self._lines) else self._all
        return Heard(after.messages - self._forgiven.messages, after.octets - self._forgiven.octets)

    def _has_heard(self) -> bool:
        return self._heard.reaches(self._wanted())

    def _forgive(self) -> None:
        """Wait no longer for what did not come, now and from now on."""
        wanted = self._wanted()
        self.stalls += 1
        self._forgiven = Heard(
            self._forgiven.messages + max(0, wanted.messages - self._heard.messages),
            self._forgiven.octets + max(0, wanted.octets - self._heard.octets),
        )

    def _read(self, side: str, keys: Keys) -> None:
        last = self.script.said[0].mono
        habits = self._language.habits
        owed: Counter[str] = Counter()
        heard = Heard()
        for said in self.script.said:
            message = self._decode(said.frames)
            name = type(message).__name__
            if said.sender == side:
                if owed[name]:  # answered when it is asked for
                    owed[name] -= 1
                    self.skipped += 1
                    continue
                frames = keys.renew(message, said.frames)
                self._lines.append(_Line(frames, heard, (said.mono - last) / 1e9))
                last = said.mono
            elif message is not None and habits.is_beat(message):
                owed[habits.beat_answers.get(name, "")] += 1
            else:
                self.recorded.append(keys.renew(message, said.frames))
                heard = _more(self._language, heard, message)
                if not habits.is_parting(message):  # nobody waits for a last word
                    self._all = heard

    def _decode(self, frames: Sequence[bytes]) -> Any:
        try:
            return self._language.decode(frames)
        except DecodeError:
            return None


class Keys:
    """Other keys in place of recorded ones, the same for the same.

    Args:
        names: of the fields that are a key.
        mark: makes the keys of this run others than those of any other run.
    """

    def __init__(self, names: Sequence[str], mark: int = 0) -> None:
        self._names, self._mark = names, mark
        self._known: dict[tuple[str, object], object] = {}

    def renew(self, message: Any, frames: Sequence[bytes]) -> list[bytes]:
        """Return the frames of a message with another key; as they are where it has none, or is no message."""
        names = [name for name in self._names if message is not None and getattr(message, name, None)]
        if not names:
            return list(frames)
        changed: list[bytes] = message.replace(**{name: self._new(name, message) for name in names}).encode()
        return changed

    def _new(self, name: str, message: Any) -> object:
        old = getattr(message, name)
        number = len(self._known) + 1
        fresh: object = number if isinstance(old, int) else f"{self._mark:016x}{number:016x}"
        return self._known.setdefault((name, old), fresh)


def _more(language: Language, heard: Heard, message: Any) -> Heard:
    _, content = language.habits.pieces.get(type(message).__name__, ("", ""))
    octets = len(getattr(message, content)) if content else 0
    return Heard(heard.messages, heard.octets + octets) if octets else Heard(heard.messages + 1, heard.octets)
