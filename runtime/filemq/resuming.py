"""Going on with a file that was interrupted, between peers that both can.

ICANHAZ has no offset (FILEMQ v2, "The ICANHAZ Command"), so this is an option of our own, read by our servers and
passed over by others. A client that holds the beginning of a file sends, before it asks for anything else, an
ICANHAZ for the file itself with ``RESUME=size:sha-1``: how much it holds, and the digest of that. Where the file
begins so still, the server sends the rest of it first, from that offset; else the whole file.

A server takes the option from a client that is subscribed to the file already. So the request allows nothing, is
no subscription, and cannot be refused; the client subscribes first to the path that covers the file, which it
would do anyway. Only a file that was announced with size and digest is gone on with, because these prove in the end
that its parts belong together, and because a server that announces them is one of ours.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from specwire.generated.filemq import Icanhaz
from specwire.runtime.filemq.actions import DiscardFile, Unfinished
from specwire.runtime.filemq.dialect import Habits
from specwire.runtime.filemq.names import covers, fault_in_name
from specwire.runtime.filemq.resync import PRUNE

RESUME_FROM_OCTETS = 1 << 20
"""What is smaller is sent again: that takes less time than to keep it."""

RESUME = "RESUME"
_VALUE = re.compile("([1-9][0-9]{0,18}):([0-9A-Fa-f]{40})")


class Beginning(NamedTuple):
    """The beginning of a file that a client claims to hold: octets, and their SHA-1 in upper-case hexadecimal."""

    size: int
    sha1: str


class Resuming:
    """The client's side, on one connection: what to keep, what to ask for, and which chunk is the answer.

    Args:
        resync: the client asks for files that it lacks; without it, not for the rest of one either.
    """

    def __init__(self, connection: int, habits: Habits, *, resync: bool) -> None:
        self._connection, self._habits = connection, habits
        self._possible = habits.resumes and resync
        self._listed = False
        self._asked: Unfinished | None = None
        self._expected: Unfinished | None = None

    def ask(self, unfinished: Unfinished | None, paths: Sequence[str]) -> tuple[Icanhaz, ...] | DiscardFile:
        """Return the commands that ask for the rest of a file, if there are any, the last for the file itself.

        Only for the first listing on a connection, because later the file may be under way. With `PRUNE` the
        server says so where the file is not published any more. A file that no path covers is of no use.
        """
        first, self._listed = not self._listed, True
        if unfinished is None or not first or not self._possible:
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
        """The file is not to be asked for any more, on no connection."""
        return [] if self._asked is None else [DiscardFile(self._connection, self._asked.name)]

    def goes_on(self, name: str, offset: int, size: int | None, sha1: str | None) -> bool:
        """A file begins with a chunk at `offset`, and announces this: tell whether it is the rest asked for.

        Whatever comes first takes the place of the unfinished file, so the rest is expected no more.
        """
        expected, self._expected = self._expected, None
        if expected is None or size is None or sha1 is None:
            return False
        return (name, offset) == (expected.name, expected.size) and offset <= size

    def is_worth_keeping(self, received: int, size: int | None, sha1: str | None) -> bool:
        """Tell whether to keep a file of which so much has come; not where all of it is here already."""
        proved = size is not None and received < size and sha1 is not None
        return self._possible and proved and received >= RESUME_FROM_OCTETS

    def _find_path(self, name: str, paths: Sequence[str]) -> str | None:
        """Return a path that covers the file, None where its name is none for this dialect, or under no path."""
        if fault_in_name(name, self._habits.longest_name_octets) is not None:
            return None
        return next((path for path in paths if covers(path, name)), None)


def read_beginning(options: Sequence[tuple[str, str]]) -> Beginning | None:
    """Return what the option says; None where it is not there, or not well formed, and so no option of ours."""
    match = _VALUE.fullmatch(dict(options).get(RESUME, ""))
    return None if match is None else Beginning(int(match[1]), match[2].upper())
