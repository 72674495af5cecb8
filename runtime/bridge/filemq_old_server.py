"""A client of FILEMQ v2 in front of a server as the C implementation has it.

That server stops for good when a chunk is larger than the credit left, and sends whatever it publishes. So it is granted
endless credit once, and what it sends waits here until the client has granted as much, a large chunk in pieces; meanwhile
the server is not read, and TCP holds it back. Files that the client has not subscribed to go no further.

What is not mended: the server has no cache and no RESYNC, it sends what changes; and it deletes files at times that are
still there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from specwire.generated import filemq
from specwire.runtime.bridge.filemq_words import read_commands, write_command
from specwire.runtime.bridge.translation import Hold, Send, Step
from specwire.runtime.filemq.codec import ENDLESS_CREDIT, FILEMQ, LIBFILEMQ, Command
from specwire.runtime.filemq.names import absolute_name, covers, normalise_path

MAX_SUBSCRIPTIONS = 1000
"""Of one client; files of further ones are not passed on."""


class OldServerTranslation:
    """One connection."""

    def __init__(self) -> None:
        self._paths: set[str] = set()
        self._credit = 0
        self._granted = False
        self._waiting: deque[Command] = deque()
        self._held = False
        self._oks_to_swallow = 0
        self._sequence = 0

    def translate(self, frames: Sequence[bytes], *, from_opener: bool) -> Sequence[Step]:
        """See `Translation.translate`."""
        if from_opener:
            return [step for command in read_commands(FILEMQ, frames) for step in self._from_client(command)]
        self._waiting.extend(filter(self._is_wanted, read_commands(LIBFILEMQ, frames)))
        return self._release()

    def _from_client(self, command: Command) -> Sequence[Step]:
        match command:
            case filemq.Nom(credit=credit):
                self._credit += credit
                first, self._granted = not self._granted, True
                endless = filemq.Nom(credit=ENDLESS_CREDIT)
                granted = [write_command(LIBFILEMQ, endless, to_opener=False)] if first else []
                return [*granted, *self._release()]
            case filemq.Hugz() if self._waiting:
                # The server's own answer is behind what waits: the client would take it for dead.
                self._oks_to_swallow += 1
                answer = write_command(FILEMQ, filemq.HugzOk(), to_opener=True)
                return [write_command(LIBFILEMQ, command, to_opener=False), answer]
            case filemq.Icanhaz(path=path, cache=cache):
                path = normalise_path(path)
                if len(self._paths) < MAX_SUBSCRIPTIONS:
                    self._paths.add(path)
                full = tuple((absolute_name(path, name), digest) for name, digest in cache)
                return [write_command(LIBFILEMQ, command.replace(cache=full), to_opener=False)]
        return [write_command(LIBFILEMQ, command, to_opener=False)]

    def _is_wanted(self, command: Command) -> bool:
        if isinstance(command, filemq.HugzOk) and self._oks_to_swallow:
            self._oks_to_swallow -= 1
            return False
        if not isinstance(command, filemq.Cheezburger):
            return True
        return any(covers(path, command.filename) for path in self._paths)

    def _release(self) -> list[Step]:
        """What the client's credit allows of what waits, in order."""
        steps: list[Step] = []
        while self._waiting:
            command = self._waiting.popleft()
            if isinstance(command, filemq.Cheezburger):
                now, later = self._cut(command)
                if later is not None:
                    self._waiting.appendleft(later)
                if now is None:
                    break
                command = now.replace(sequence=self._sequence)
            step = write_command(FILEMQ, command, to_opener=True)
            self._sequence += isinstance(command, filemq.Cheezburger) and isinstance(step, Send)
            steps.append(step)
        if self._held != bool(self._waiting):
            self._held = bool(self._waiting)
            steps.append(Hold(opener=False, held=self._held))
        return steps

    def _cut(
        self, command: filemq.Cheezburger
    ) -> tuple[filemq.Cheezburger | None, filemq.Cheezburger | None]:
        """What may be sent of a chunk now, and what is left of it."""
        size = len(command.chunk)
        if size <= self._credit:
            self._credit -= size
            return command, None
        room, self._credit = self._credit, 0
        if not room:
            return None, command
        rest = command.replace(offset=command.offset + room, chunk=bytes(command.chunk[room:]))
        return command.replace(chunk=bytes(command.chunk[:room])), rest
