"""A client as the C implementation has it in front of a server of FILEMQ v2.

That client cannot ask for the files that there are, and takes neither HUGZ nor KTHXBAI from a server. It writes chunks into
the file itself until an empty chunk ends it. So the bridge asks for it (RESYNC), answers for it that it lives while the
connection lives, ends and deletes a file that is given up half-way, and has a file deleted before a new version of it, of
which it would keep the tail.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from specwire.generated import filemq
from specwire.generated.filemq import Operation
from specwire.runtime.bridge.filemq_words import read_commands, write_command
from specwire.runtime.bridge.translation import Step
from specwire.runtime.filemq.codec import FILEMQ, LIBFILEMQ, Command
from specwire.runtime.filemq.names import (
    MAX_CACHED_NAME_OCTETS,
    absolute_name,
    normalise_path,
    relative_name,
)
from specwire.runtime.filemq.resync import RESYNC, WHOLE

CACHE_ENTRIES = 255
MAX_KNOWN = 100_000
"""Files whose names are kept; one more, and the client is taken to have any file, so that each is deleted first."""


class OldClientTranslation:
    """One connection."""

    def __init__(self) -> None:
        self._in_place = True
        self._known: set[str] | None = set()
        self._open: filemq.Cheezburger | None = None
        self._oks_to_swallow = 0
        self._sequence = 0

    def translate(self, frames: Sequence[bytes], *, from_opener: bool) -> Sequence[Step]:
        """See `Translation.translate`."""
        if from_opener:
            return [
                write_command(FILEMQ, said, to_opener=False)
                for command in read_commands(LIBFILEMQ, frames)
                for said in self._from_client(command)
            ]
        sends: list[Step] = []
        for command in read_commands(FILEMQ, frames):
            if isinstance(command, filemq.Hugz):
                sends.append(write_command(FILEMQ, filemq.HugzOk(), to_opener=False))
                continue
            for said in self._from_server(command):
                sends.append(write_command(LIBFILEMQ, said, to_opener=True))
        return sends

    def _from_client(self, command: Command) -> Iterator[Command]:
        if not isinstance(command, filemq.Icanhaz):
            yield command
            return
        self._in_place = self._in_place and WHOLE not in command.options
        path = normalise_path(command.path)
        names = [(absolute_name(path, name), digest) for name, digest in command.cache]
        for name, _ in names:
            self._learn(name)
        cache = [(relative_name(path, name), digest) for name, digest in names]
        cache = [entry for entry in cache if len(entry[0].encode()) <= MAX_CACHED_NAME_OCTETS]
        parts = [cache[at : at + CACHE_ENTRIES] for at in range(0, len(cache), CACHE_ENTRIES)] or [[]]
        for part in parts[:-1]:
            self._oks_to_swallow += 1
            yield filemq.Icanhaz(path=path, options=(), cache=tuple(part))
        yield filemq.Icanhaz(path=path, options=command.options or (RESYNC,), cache=tuple(parts[-1]))

    def _from_server(self, command: Command) -> Iterator[Command]:
        match command:
            case filemq.Kthxbai():
                return
            case filemq.IcanhazOk() if self._oks_to_swallow:
                self._oks_to_swallow -= 1
            case filemq.Cheezburger():
                for step in self._place(command) if self._in_place else (command,):
                    yield step.replace(sequence=self._sequence)
                    self._sequence += 1
            case _:
                yield command

    def _place(self, command: filemq.Cheezburger) -> Iterator[filemq.Cheezburger]:
        """A chunk or deletion, after what a client that writes into the file itself must hear before it."""
        begins = command.operation == Operation.CREATE and command.offset == 0
        before = self._open
        if before is not None and (begins or before.filename != command.filename):
            yield before.replace(offset=before.offset + len(before.chunk), chunk=b"")
            yield _deletion(before.filename)
            self._open = None
            if self._known is not None:
                self._known.discard(before.filename)
        if command.operation == Operation.DELETE:
            if self._known is not None:
                self._known.discard(command.filename)
            yield command
            return
        if begins and (self._known is None or command.filename in self._known):
            yield _deletion(command.filename)
        self._learn(command.filename)
        self._open = command.replace(chunk=bytes(command.chunk)) if command.chunk else None
        yield command

    def _learn(self, name: str) -> None:
        if self._known is not None:
            self._known.add(name)
            if len(self._known) > MAX_KNOWN:
                self._known = None


def _deletion(name: str) -> filemq.Cheezburger:
    return filemq.Cheezburger(
        sequence=0, operation=Operation.DELETE, filename=name, offset=0, headers=(), chunk=b""
    )
