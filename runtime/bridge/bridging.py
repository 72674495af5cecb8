"""The bridge on its connections: units in, translated messages out, and counts of what could not be said."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence

from specwire.runtime.bridge.translation import Hold, Send, Step, Translation, Unsaid, UnsayableError
from specwire.runtime.bridge.units import Units, UnreadableError, join_frames
from specwire.runtime.transport.relay import Passage

logger = logging.getLogger(__name__)

MAX_SAID = 20
"""Connections that are ended and told one by one; the rest is counted."""

MAX_REASONS = 100
"""Reasons that are counted one by one; further ones are counted together."""


class Bridged:
    """Counts: messages to the listening side and back, those that could not be said, by the reason, and connections that
    were ended because they cannot be read."""

    def __init__(self) -> None:
        self.to_listener = 0
        self.to_opener = 0
        self.unsaid: Counter[str] = Counter()
        self.ended = 0

    def note_unsaid(self, reason: str) -> bool:
        """Count a message that goes no further; return whether this is the first for this reason."""
        if reason not in self.unsaid and len(self.unsaid) >= MAX_REASONS:
            reason = "other reasons"
        self.unsaid[reason] += 1
        return self.unsaid[reason] == 1


class BridgeWatch:
    """Gives the watcher of each connection (`specwire.runtime.transport.relay.Watch`).

    Args:
        make_translation: called for each connection.
    """

    def __init__(self, make_translation: Callable[[], Translation]) -> None:
        self.bridged = Bridged()
        self._make_translation = make_translation

    def __call__(self, passage: Passage) -> _Bridging:
        return _Bridging(passage, self._make_translation(), self.bridged)


class _Bridging:
    """One connection."""

    def __init__(self, passage: Passage, translation: Translation, bridged: Bridged) -> None:
        self._passage, self._translation, self._bridged = passage, translation, bridged
        self._units = {from_opener: Units() for from_opener in (True, False)}

    def pass_on(self, octets: bytes, *, from_opener: bool) -> bytes:
        """Return what goes on, translated; what goes back is sent. See `Watcher.pass_on`."""
        onward: list[bytes] = []
        try:
            for unit in self._units[from_opener].feed(octets):
                if isinstance(unit, bytes):
                    onward.append(unit)
                else:
                    onward += self._translate(unit, from_opener)
        except UnreadableError as error:
            self._end(f"{'who connects' if from_opener else 'who listens'}: {error}")
        return b"".join(onward)

    def _translate(self, frames: list[bytes], from_opener: bool) -> list[bytes]:
        steps: Sequence[Step]
        try:
            steps = self._translation.translate(frames, from_opener=from_opener)
        except UnsayableError as error:
            unsaid = Unsaid(str(error))
            steps = [unsaid] if error.answer is None else [unsaid, error.answer]
        onward: list[bytes] = []
        for step in steps:
            match step:
                case Hold(opener=opener, held=held):
                    self._passage.hold(held, opener=opener)
                case Unsaid(reason=reason):
                    if self._bridged.note_unsaid(reason):
                        logger.warning("%s: not passed on: %s", self._passage.address, reason)
                case Send(to_opener=to_opener, frames=sent):
                    self._count(to_opener)
                    if to_opener == from_opener:
                        self._passage.send(join_frames(sent), to_opener=to_opener)
                    else:
                        onward.append(join_frames(sent))
        return onward

    def _end(self, why: str) -> None:
        self._bridged.ended += 1
        if self._bridged.ended <= MAX_SAID:
            logger.warning("a connection of %s is ended, %s", self._passage.address, why)
        self._passage.end()

    def _count(self, to_opener: bool) -> None:
        if to_opener:
            self._bridged.to_opener += 1
        else:
            self._bridged.to_listener += 1
