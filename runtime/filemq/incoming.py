"""From chunks to files: what the client makes of the CHEEZBURGER commands of one connection.

The specification promises consecutive chunks and leaves open where a file ends. The reading here:

- a chunk at offset 0 begins a file, the same one anew if it is already under way;
- an empty chunk ends it; where the server announced a size (our own server does), it must be reached exactly;
- from a server that announces nothing, the first chunk of another file ends it too, and it counts as unverified;
- a chunk that does not continue the file breaks it: the rest is thrown away until it begins again;
- the rest of a file that was asked for (`resuming`) may come first on a connection, and goes on where it stopped.

A file that can be gone on with later, and is worth it, is kept when the connection ends (`KeepFile`).

Names are judged before anything is done with them. `take` returns disk actions, and `Report` or `Failed`
where something was refused; `Failed` means that the file should be asked for again.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from specwire.generated.filemq import Cheezburger, Operation
from specwire.runtime.filemq.actions import (
    CompleteFile,
    DeleteFile,
    DiscardFile,
    Failed,
    KeepFile,
    Report,
    WriteChunk,
)
from specwire.runtime.filemq.events import FileResumed
from specwire.runtime.filemq.progress import UnderWay
from specwire.runtime.filemq.resuming import Resuming
from specwire.runtime.kernel.log import Refused

DIGEST = re.compile("[0-9A-Fa-f]{40}")

Step = WriteChunk | CompleteFile | DiscardFile | KeepFile | DeleteFile | Report | Failed


class Announced(msgspec.Struct, frozen=True):
    """What the headers of a chunk say of the whole file; None where they do not say it."""

    size: int | None
    sha1: str | None


class Arriving(msgspec.Struct):
    """The file under way; `broken` where what still comes of it is thrown away, `kept` where an end is no loss."""

    name: str
    announced: Announced
    received: int = 0
    broken: bool = False
    kept: bool = False


class Incoming:
    """The file under way on one connection.

    Args:
        resuming: judges what is to be kept, and what goes on.
        screen: judges a name; returns None where it is accepted, the reason where it is refused, and an
            empty one where it is to be passed over without a word.
    """

    def __init__(self, connection: int, screen: Callable[[str], str | None], *, resuming: Resuming) -> None:
        self._connection = connection
        self._screen, self._resuming = screen, resuming
        self._file: Arriving | None = None

    @property
    def under_way(self) -> UnderWay | None:
        """The file under way, and how much of it has come."""
        file = self._file
        if file is None or file.broken:
            return None
        return UnderWay(file.name, file.received, file.announced.size)

    def take(self, command: Cheezburger) -> list[Step]:
        """Return what is to be done because of one command."""
        steps = self._leave(command)
        fault = self._screen(command.filename) if self._file is None else None  # judged when it began
        if fault is not None:
            # Once for each file: a chunk in the middle of a refused file says nothing new.
            return (
                steps if command.offset or not fault else [*steps, Report(Refused(command.filename, fault))]
            )
        if command.operation == Operation.DELETE:
            return [*steps, DeleteFile(self._connection, command.filename)]
        if command.offset == 0 or self._file is None:
            self._file, news = self._begin(command, read_headers(command.headers))
            steps += news
        return [*steps, *self._continue(self._file, command)]

    def stop(self) -> list[DiscardFile]:
        """The connection ends: the file under way is thrown away unless it is kept."""
        file, self._file = self._file, None
        lost = file is not None and not file.broken and not file.kept
        return [DiscardFile(self._connection, file.name)] if file is not None and lost else []

    def _begin(self, command: Cheezburger, announced: Announced) -> tuple[Arriving, list[Step]]:
        """Take the first chunk of a file on this connection, or of one that begins anew."""
        name, offset = command.filename, command.offset
        goes_on = self._resuming.goes_on(name, offset, announced.size, announced.sha1)
        if offset == 0:
            return Arriving(name, announced), []
        if goes_on:
            return Arriving(name, announced, received=offset, kept=True), [Report(FileResumed(name, offset))]
        return Arriving(name, announced, broken=True), [self._failed(name, f"begins at offset {offset}")]

    def _leave(self, command: Cheezburger) -> list[Step]:
        """End the file under way where the command is about another one, or deletes it."""
        file = self._file
        if file is None or (file.name == command.filename and command.operation == Operation.CREATE):
            return []
        self._file = None
        if file.broken:
            return []
        if file.announced.size in (None, file.received) and file.name != command.filename:
            return [CompleteFile(self._connection, file.name, file.received, file.announced.sha1)]
        return [DiscardFile(self._connection, file.name)]

    def _continue(self, file: Arriving, command: Cheezburger) -> list[Step]:
        if file.broken:
            return []
        if command.offset != file.received:
            return self._break(file, f"goes on at offset {command.offset}, not at {file.received}")
        if command.chunk:
            file.received += len(command.chunk)
            if file.announced.size is not None and file.received > file.announced.size:
                return self._break(file, f"is longer than the {file.announced.size} octets announced")
            written = WriteChunk(self._connection, file.name, command.offset, command.chunk)
            return [written, *self._keep(file)]
        if file.announced.size not in (None, file.received):
            return self._break(file, f"ends after {file.received} of {file.announced.size} octets")
        self._file = None
        return [CompleteFile(self._connection, file.name, file.received, file.announced.sha1)]

    def _keep(self, file: Arriving) -> list[KeepFile]:
        """Have the file kept from the chunk on with which it is worth it."""
        announced = file.announced
        if file.kept or not self._resuming.is_worth_keeping(file.received, announced.size, announced.sha1):
            return []
        file.kept = True
        return [KeepFile(self._connection, file.name)]

    def _break(self, file: Arriving, reason: str) -> list[Step]:
        file.broken = True
        return [DiscardFile(self._connection, file.name), self._failed(file.name, reason)]

    def _failed(self, name: str, reason: str) -> Failed:
        return Failed(self._connection, name, reason, again=True)


def read_headers(headers: tuple[tuple[str, str], ...]) -> Announced:
    """Return what the headers announce; a value that is not a size or a digest counts as absent."""
    values = dict(headers)
    size, sha1 = values.get("size", ""), values.get("sha-1", "")
    return Announced(
        size=int(size) if size.isascii() and size.isdigit() and len(size) <= 20 else None,
        sha1=sha1.upper() if DIGEST.fullmatch(sha1) else None,
    )
