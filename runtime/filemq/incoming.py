"""From chunks to files: what the client makes of the CHEEZBURGER commands of one connection.

The specification promises consecutive chunks and leaves open where a file ends. The reading here:

- a chunk at offset 0 begins a file, the same one anew if it is already under way;
- an empty chunk ends it; where the server announced a size (our own server does), it must be reached exactly;
- from a server that announces nothing, the first chunk of another file ends it too, and it counts as unverified;
- a chunk that does not continue the file breaks it: the rest is thrown away until it begins again.

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
    Report,
    WriteChunk,
)
from specwire.runtime.filemq.events import Refused

DIGEST = re.compile("[0-9A-Fa-f]{40}")

Step = WriteChunk | CompleteFile | DiscardFile | DeleteFile | Report | Failed


class Announced(msgspec.Struct, frozen=True):
    """What the headers of a chunk say of the whole file; None where they do not say it."""

    size: int | None
    sha1: str | None


class Arriving(msgspec.Struct):
    """The file under way; `broken` where what still comes of it is thrown away."""

    name: str
    announced: Announced
    received: int = 0
    broken: bool = False


class Incoming:
    """The file under way on one connection.

    Args:
        screen: judges a name; returns None where it is accepted, the reason where it is refused, and an
            empty one where it is to be passed over without a word.
    """

    def __init__(self, connection: int, screen: Callable[[str], str | None]) -> None:
        self._connection = connection
        self._screen = screen
        self._file: Arriving | None = None

    def take(self, command: Cheezburger) -> list[Step]:
        """Return what is to be done because of one command."""
        steps = self._leave(command)
        fault = self._screen(command.filename)
        if fault is not None:
            # Once for each file: a chunk in the middle of a refused file says nothing new.
            return (
                steps if command.offset or not fault else [*steps, Report(Refused(command.filename, fault))]
            )
        if command.operation == Operation.DELETE:
            return [*steps, DeleteFile(self._connection, command.filename)]
        if command.offset == 0:
            self._file = Arriving(command.filename, read_headers(command.headers))
        elif self._file is None:
            self._file = Arriving(command.filename, read_headers(command.headers), broken=True)
            return [*steps, self._failed(command.filename, f"begins at offset {command.offset}")]
        return [*steps, *self._continue(self._file, command)]

    def stop(self) -> list[DiscardFile]:
        """The connection ends: the file under way is thrown away."""
        file, self._file = self._file, None
        return [] if file is None or file.broken else [DiscardFile(self._connection, file.name)]

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
            return [WriteChunk(self._connection, file.name, command.offset, command.chunk)]
        if file.announced.size not in (None, file.received):
            return self._break(file, f"ends after {file.received} of {file.announced.size} octets")
        self._file = None
        return [CompleteFile(self._connection, file.name, file.received, file.announced.sha1)]

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
