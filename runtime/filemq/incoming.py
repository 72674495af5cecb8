"""Content that a client receives: lost commands, and files from chunks.

Our own server numbers its CHEEZBURGER commands from 0 (the specification does not say what
`sequence` counts), so a gap shows a lost command. Only a new connection with RESYNC repairs that.
Our server is recognized by the size in its headers.

The specification promises consecutive chunks, and does not say where a file ends. This client
reads:

- A chunk at offset 0 begins a file, also one that is arriving already.
- An empty chunk ends a file. If the server announced a size (our server does), it must be equal.
- Without an announced size the first chunk of another file ends it, too. The file is then
  unverified.
- A chunk that does not continue the file breaks it: the rest is discarded until the file begins
  again.
- The rest of a file that was asked for may come first on a connection, and continues that file.

A file that can be resumed, and is worth it, is kept when the connection ends (`KeepFile`). A
renamed file comes as its end alone (see `RENAMES`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from specwire.generated.filemq import Cheezburger, Icanhaz, Operation
from specwire.runtime.filemq.codec import Habits
from specwire.runtime.filemq.diskwork import (
    CompleteFile,
    CompleteRenamed,
    DeleteFile,
    DiscardFile,
    Failed,
    KeepFile,
    Unfinished,
    WriteChunk,
)
from specwire.runtime.filemq.events import FileResumed
from specwire.runtime.filemq.names import covers, fault_in_entry
from specwire.runtime.filemq.resync import PRUNE, RESUME, RESUME_FROM_OCTETS
from specwire.runtime.filemq.status import UnderWay
from specwire.runtime.kernel.log import Refused

DIGEST = re.compile("[0-9A-Fa-f]{40}")
MODE = re.compile("0[0-7]{3}")

Step = (
    WriteChunk
    | CompleteFile
    | CompleteRenamed
    | DiscardFile
    | KeepFile
    | DeleteFile
    | Failed
    | Refused
    | FileResumed
)
"""An order, or an event for the log; `Failed`: the file should be asked for again."""


class OverrunError(Exception):
    """The server sent more than its credit allows."""


class GapError(Exception):
    """A command of the server is missing."""


class Announced(NamedTuple):
    """Headers of a chunk about its file; None or False if a header is absent.

    Attributes:
        mode: permission bits.
        mtime_ns: modification time, in nanoseconds since 1970.
        renamed: the client has the content under another name.
    """

    size: int | None = None
    sha1: str | None = None
    mode: int | None = None
    mtime_ns: int | None = None
    renamed: bool = False


@dataclass(eq=False)
class Arriving:
    """The file that is arriving.

    Attributes:
        size: as announced.
        is_broken: its further chunks are discarded.
        is_kept: the disk keeps it when the connection ends.
    """

    name: str
    announced: Announced
    size: int | None
    received: int
    is_broken: bool = False
    is_kept: bool = False


class Resuming:
    """Interrupted files on one connection: which to keep, what to ask for, and what answers.

    Args:
        is_possible: the client asks for files that it lacks, and the server can resume.
        from_octets: size from which a file is worth keeping.
    """

    def __init__(
        self, connection: int, habits: Habits, *, is_possible: bool, from_octets: int = RESUME_FROM_OCTETS
    ) -> None:
        self._connection, self._habits = connection, habits
        self._is_possible, self._from_octets = is_possible, from_octets
        self._is_listed = False
        self._asked: Unfinished | None = None
        self._expected: Unfinished | None = None

    def ask(self, unfinished: Unfinished | None, paths: Sequence[str]) -> tuple[Icanhaz, ...] | DiscardFile:
        """Return the commands that ask for the rest of a file, the last one for the file itself.

        Only the first listing of a connection is used, because later the file may be arriving. With
        `PRUNE` the server reports a file that is no longer published. A file that no path covers is
        of no use.
        """
        is_first, self._is_listed = not self._is_listed, True
        if unfinished is None or not is_first or not self._is_possible:
            return ()
        path = self._find_path(unfinished.name, paths)
        if path is None:
            return DiscardFile(self._connection, unfinished.name)
        self._asked = self._expected = unfinished
        options = ((RESUME, f"{unfinished.size}:{unfinished.sha1}"), PRUNE, *self._habits.options)
        return (
            Icanhaz(path=path, options=self._habits.options, cache=()),
            Icanhaz(path=unfinished.name, options=options, cache=()),
        )

    def give_up(self) -> list[DiscardFile]:
        """Return the order that removes the file, so that no connection asks for it again."""
        return [] if self._asked is None else [DiscardFile(self._connection, self._asked.name)]

    def accept_rest(self, name: str, offset: int, size: int | None, sha1: str | None) -> bool:
        """Return whether a file that begins with a chunk at `offset` is the rest that was requested.

        From then on, no rest is expected: the first file to arrive replaces the unfinished one.
        """
        expected, self._expected = self._expected, None
        if expected is None or size is None or sha1 is None:
            return False
        return (name, offset) == (expected.name, expected.size) and offset <= size

    def is_worth_keeping(self, received: int, size: int | None, sha1: str | None) -> bool:
        """Whether to keep a file of which so much has come, unless that is all of it."""
        is_proved = size is not None and received < size and sha1 is not None
        return self._is_possible and is_proved and received >= self._from_octets

    def _find_path(self, name: str, paths: Sequence[str]) -> str | None:
        """Return a path that covers the file; None if there is none, or the name is invalid."""
        if fault_in_entry(name, self._habits.longest_name_octets) is not None:
            return None
        return next((path for path in paths if covers(path, name)), None)


class Intake:
    """The content of one connection, whose number the orders carry.

    Args:
        counts_commands: as `Habits.counts_commands`.
        fault_in_file: as `Paths.fault_in_file`.

    Attributes:
        outstanding_octets: credit that the server has not used; the owner adds what it grants.
        pending_octets: received and not written yet; the owner subtracts what is written.
    """

    def __init__(
        self,
        connection: int,
        *,
        counts_commands: bool,
        fault_in_file: Callable[[str], str | None],
        resuming: Resuming,
    ) -> None:
        self.outstanding_octets = self.pending_octets = 0
        self._connection, self._counts_commands = connection, counts_commands
        self._fault_in_file, self._resuming = fault_in_file, resuming
        self._expected = 0
        self._missing: int | None = None
        self._is_counted = False
        self._file: Arriving | None = None

    @property
    def under_way(self) -> UnderWay | None:
        """The file that is arriving, and how much of it has come."""
        file = self._file
        return None if file is None or file.is_broken else UnderWay(file.name, file.received, file.size)

    def receive(self, command: Cheezburger) -> list[Step]:
        """Return what follows from a command; raises OverrunError or GapError."""
        self.outstanding_octets -= len(command.chunk)
        if self.outstanding_octets < 0:
            raise OverrunError(f"the server sent {-self.outstanding_octets} octets beyond its credit")
        if self._counts_commands:
            self._check_sequence(command)
        file, name = self._file, command.filename
        if file is not None and (file.name, Operation.CREATE) == (name, command.operation):
            if command.offset and command.chunk:
                return self._continue(file, command)
            steps: list[Step] = []
        else:
            steps = self._end_previous(command)
        if command.offset and not command.chunk and command.operation == Operation.CREATE:
            announced = read_headers(command.headers)
            if announced.renamed and announced.sha1 is not None and announced.size == command.offset:
                return [*steps, *self._complete_renamed(name, announced.sha1, announced)]
        fault = self._fault_in_file(name) if self._file is None else None  # checked when it began
        if fault is not None:  # reported once for each file, not for each chunk
            return [*steps, Refused(name, fault)] if fault and not command.offset else steps
        if command.operation == Operation.DELETE:
            return [*steps, DeleteFile(self._connection, name)]
        if command.offset and self._file is not None:
            return [*steps, *self._continue(self._file, command)]
        return [*steps, *self._begin(command)]

    def stop(self) -> list[DiscardFile]:
        """End the connection: the file is discarded unless it is kept."""
        file, self._file = self._file, None
        if file is None or file.is_broken or file.is_kept:
            return []
        return [DiscardFile(self._connection, file.name)]

    def _check_sequence(self, command: Cheezburger) -> None:
        if command.sequence != self._expected and self._missing is None:
            self._missing = self._expected
        self._expected = command.sequence + 1
        if self._missing is None and self._is_counted:
            return
        self._is_counted = self._is_counted or read_headers(command.headers).size is not None
        if self._is_counted and self._missing is not None:
            raise GapError(f"command {self._missing} of the server is missing")

    def _end_previous(self, command: Cheezburger) -> list[Step]:
        """End the arriving file: the command is about another one, or deletes it."""
        file, self._file = self._file, None
        if file is None or file.is_broken:
            return []
        if file.size in (None, file.received) and file.name != command.filename:
            return [self._complete(file)]
        return [DiscardFile(self._connection, file.name)]

    def _complete_renamed(self, name: str, sha1: str, announced: Announced) -> list[Step]:
        """Complete a file with content that the inbox has; its older version may be arriving."""
        file, self._file = self._file, None
        steps: list[Step] = [] if file is None or file.is_broken else [DiscardFile(self._connection, name)]
        if fault := self._fault_in_file(name):
            return [*steps, Refused(name, fault)]
        if fault is not None:
            return steps
        size, mode, mtime_ns = announced.size or 0, announced.mode, announced.mtime_ns
        return [*steps, CompleteRenamed(self._connection, name, size, sha1, mode, mtime_ns)]

    def _begin(self, command: Cheezburger) -> list[Step]:
        """Begin a file on this connection, or the one that is arriving again."""
        name, offset = command.filename, command.offset
        announced = read_headers(command.headers)
        size, sha1 = announced.size, announced.sha1
        is_rest = self._resuming.accept_rest(name, offset, size, sha1)
        file = self._file = Arriving(name, announced, size, received=offset)
        if offset == 0:
            return self._continue(file, command)
        if is_rest:
            file.is_kept = True
            return [FileResumed(name, offset), *self._continue(file, command)]
        file.is_broken = True
        return [self._fail(name, f"begins at offset {offset}")]

    def _continue(self, file: Arriving, command: Cheezburger) -> list[Step]:
        if file.is_broken:
            return []
        if command.offset != file.received:
            return self._break(file, f"continues at offset {command.offset}, not at {file.received}")
        if command.chunk:
            file.received += len(command.chunk)
            if file.size is not None and file.received > file.size:
                return self._break(file, f"is longer than the {file.size} octets announced")
            self.pending_octets += len(command.chunk)
            written = WriteChunk(self._connection, file.name, command.offset, command.chunk)
            if file.is_kept or not self._resuming.is_worth_keeping(
                file.received, file.size, file.announced.sha1
            ):
                return [written]
            file.is_kept = True
            return [written, KeepFile(self._connection, file.name)]
        if file.size not in (None, file.received):
            return self._break(file, f"ends after {file.received} of {file.size} octets")
        self._file = None
        return [self._complete(file)]

    def _complete(self, file: Arriving) -> CompleteFile:
        said = file.announced
        return CompleteFile(self._connection, file.name, file.received, said.sha1, said.mode, said.mtime_ns)

    def _break(self, file: Arriving, reason: str) -> list[Step]:
        file.is_broken = True
        return [DiscardFile(self._connection, file.name), self._fail(file.name, reason)]

    def _fail(self, name: str, reason: str) -> Failed:
        return Failed(self._connection, name, reason, again=True)


def read_headers(headers: tuple[tuple[str, str], ...]) -> Announced:
    """Return what headers announce; a value that is not well formed counts as absent."""
    values = dict(headers)
    sha1, mode = values.get("sha-1", ""), values.get("mode", "")
    return Announced(
        size=_read_number(values.get("size", "")),
        sha1=sha1.upper() if DIGEST.fullmatch(sha1) else None,
        mode=int(mode, 8) if MODE.fullmatch(mode) else None,
        mtime_ns=_read_number(values.get("mtime", "")),
        renamed=values.get("renamed") == "1",
    )


def _read_number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 20 else None
