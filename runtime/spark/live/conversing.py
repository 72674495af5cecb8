"""State of one watched conversation: when it raises an alert, and what it remembers.

There are three kinds of alerts:

- ``violation``: a message that the dialog does not allow in its state, in the concurrent reading.
  If a protocol has several dialogs, all of them watch until they differ. A message that none of the
  remaining dialogs allows is a violation.
- ``undecodable``: frames that are not a message of the protocol.
- ``silent``: a side that spoke before has not been heard for a time, and the dialog is not over.
  The time is measured by the watcher's clock from the reading of the last message, so a clock
  difference between two hosts has no effect.

The number of alerts is limited, whatever a peer sends. After a violation or an undecodable message,
further ones of the conversation are counted but not emitted for `Rules.repeat_s`. The next emitted
alert states the count. Silence of a side is emitted once, until the side is heard again. A repeated
message, or one that arrives after later ones of its tap, is ignored. The state is a few hundred
octets and the keys of open requests, `OPEN_KEYS` at most for each kind of request.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Literal

import msgspec

from specwire.generated.dialog import Dialog
from specwire.generated.errors import Violation
from specwire.generated.monitors import Memory
from specwire.generated.session import DialogSession
from specwire.runtime.spark.answers.protocol_specifics import silence_s
from specwire.runtime.spark.live.noticing import Noticed, dialogs

Kind = Literal["violation", "undecodable", "silent"]

OPEN_KEYS = 1024
"""Maximum open requests of one kind in a conversation; the longest silent are forgotten."""

SIDES = 8
"""Maximum sides of a conversation to watch for silence; a capture may state any sender."""


class Rules(msgspec.Struct, frozen=True):
    """Rules for alerts.

    Attributes:
        silent_s: seconds after which a side is silent; None for the limit that the answers use.
        repeat_s: seconds in which further findings of a conversation are only counted.
        forget_s: seconds after which a conversation that is silent on all sides is forgotten.
    """

    silent_s: float | None = None
    repeat_s: float = 60.0
    forget_s: float = 3600.0

    def silence_ms(self, protocol: str) -> int:
        """Return the time after which a side is silent, in milliseconds."""
        return int(1000 * (silence_s(protocol) if self.silent_s is None else self.silent_s))


class Alert(msgspec.Struct, frozen=True):
    """An alert.

    Attributes:
        ts: time of the finding, microseconds since 1970; for silence, when the side was last heard.
        kind: see the module.
        sender: role letter of the side that caused it.
        seq, message: number and class of the message. Both are None for silence, and `message` is
            None for undecodable frames.
        state: state of the dialog; None if no dialog is watched.
        expected: messages that the dialog would have allowed, each as ``ROLE:Message``.
        text: finding as one sentence.
        suppressed: number of earlier findings of the conversation that were not emitted.
    """

    ts: int
    kind: Kind
    sender: str
    seq: int | None
    message: str | None
    state: str | None
    expected: tuple[str, ...]
    text: str
    suppressed: int = 0


class Heard(msgspec.Struct, array_like=True):
    """A side of the conversation: time and reading time of its last message.

    `told` says whether an alert for its silence was emitted.
    """

    ts: int
    read_ms: int
    told: bool = False


class Conversation(msgspec.Struct):
    """State of a conversation.

    Attributes:
        watched: state of the session of each dialog, by the dialog's name.
        last_seq: number of the last message, -1 before the first.
        heard: sides by role letter.
        quiet_until_ms: time until which findings are only counted.
        timer_ms: time of the next check for silence; None if no timer is set.
    """

    protocol: str
    peer: str = ""
    watched: dict[str, Memory] = {}
    last_seq: int = -1
    heard: dict[str, Heard] = {}
    quiet_until_ms: int = 0
    suppressed: int = 0
    timer_ms: int | None = None

    @classmethod
    def begin(cls, protocol: str) -> Conversation:
        """Return a conversation without messages."""
        return cls(
            protocol, watched={name: Memory(_start(dialog)) for name, dialog in dialogs(protocol).items()}
        )

    @classmethod
    def load(cls, octets: bytes) -> Conversation | None:
        """Return what `dump` stored; None if a version with other dialogs stored it."""
        try:
            found = _decoder.decode(octets)
        except msgspec.ValidationError:
            return None
        known = dialogs(found.protocol)
        for name, memory in found.watched.items():
            if name not in known or memory.state not in known[name].phases:
                return None
        return found

    def dump(self) -> bytes:
        """Return the state as octets."""
        return msgspec.msgpack.encode(self)

    @property
    def over(self) -> bool:
        """Whether every remaining dialog is closed, so that it allows no more messages."""
        left = [(dialogs(self.protocol)[name], memory) for name, memory in self.watched.items()]
        return bool(left) and all(dialog.phases[memory.state].closed for dialog, memory in left)

    def observe(self, messages: Sequence[Noticed], now_ms: int, rules: Rules) -> Iterator[Alert]:
        """Process messages in the order of `seq`, and yield alerts.

        `now_ms` is the watcher's clock, milliseconds since 1970.
        """
        sessions = {name: _session(self.protocol, name) for name in self.watched}
        for name, session in sessions.items():
            session.recall(self.watched[name])
        for message in messages:
            if message.seq <= self.last_seq:
                continue
            self.last_seq = message.seq
            if message.sender in self.heard or len(self.heard) < SIDES:
                self.heard[message.sender] = Heard(message.ts, now_ms)
            found = self._look(message, sessions)
            if found is not None:
                yield from self._tell(found, now_ms, rules)
        self.watched = {name: session.memory() for name, session in sessions.items()}

    def find_silent(self, now_ms: int, rules: Rules) -> Iterator[Alert]:
        """Yield an alert for each side that has been silent for too long and has no alert yet."""
        silence_ms = rules.silence_ms(self.protocol)
        for sender, heard in sorted(self.heard.items()):
            since_ms = now_ms - heard.read_ms
            if heard.told or since_ms < silence_ms:
                continue
            heard.told = True
            text = f"{sender} was not heard for {since_ms / 1000:.1f} s, after {silence_ms / 1000:g} s it is silent"
            states = ", ".join(memory.state for memory in self.watched.values()) or None
            yield Alert(heard.ts, "silent", sender, None, None, states, (), text)

    def next_look_ms(self, rules: Rules) -> int:
        """Return when the next side will be silent; if all are, when to forget the conversation."""
        silence_ms = rules.silence_ms(self.protocol)
        waiting = [heard.read_ms + silence_ms for heard in self.heard.values() if not heard.told]
        if waiting:
            return min(waiting)
        last_ms = max((heard.read_ms for heard in self.heard.values()), default=0)
        return last_ms + max(silence_ms, int(1000 * rules.forget_s))

    def _look(self, message: Noticed, sessions: dict[str, DialogSession]) -> Alert | None:
        states = ", ".join(session.state for session in sessions.values()) or None
        if message.name is None:
            for session in sessions.values():
                session.malformed(message.sender)
            text = message.fault or ""
            return Alert(message.ts, "undecodable", message.sender, message.seq, None, states, (), text)
        # Sessions that cannot be the dialog of this conversation are removed, but never the last.
        seen = _seen(message.name, message.values)
        found = {name: session.observe(message.sender, seen) for name, session in sessions.items()}
        violations = {name: violation for name, violation in found.items() if violation is not None}
        if len(violations) < len(found):
            for name in violations:
                del sessions[name]
            return None
        if not violations:
            return None
        return _alert(message, tuple(violations.values()))

    def _tell(self, alert: Alert, now_ms: int, rules: Rules) -> Iterator[Alert]:
        if now_ms < self.quiet_until_ms:
            self.suppressed += 1
            return
        yield msgspec.structs.replace(alert, suppressed=self.suppressed)
        self.suppressed = 0
        self.quiet_until_ms = now_ms + int(1000 * rules.repeat_s)


_decoder = msgspec.msgpack.Decoder(Conversation)


def _alert(message: Noticed, violations: Sequence[Violation]) -> Alert:
    expected = tuple(dict.fromkeys(label for violation in violations for label in violation.expected))
    states = ", ".join(violation.state for violation in violations)
    text = "; ".join(map(str, violations))
    sender, seq = message.sender, message.seq
    return Alert(message.ts, "violation", sender, seq, message.name, states, expected, text)


def _start(dialog: Dialog) -> str:
    return next(iter(dialog.phases))


def _session(protocol: str, name: str) -> DialogSession:
    dialog = dialogs(protocol)[name]
    return DialogSession(dialog, dialog.roles[0], "concurrent", open_limit=OPEN_KEYS)


def _seen(name: str, values: dict[str, int | str | None]) -> object:
    """Return a substitute for a message, with its class name and the fields that dialogs read."""
    return _kind(name)(values)


@cache
def _kind(name: str) -> type:
    def keep(self: object, values: dict[str, object]) -> None:
        self.__dict__.update(values)

    return type(name, (), {"__init__": keep})
