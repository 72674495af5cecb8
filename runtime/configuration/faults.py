"""What is wrong with a configuration, and where: a value, until somebody has to read it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path

import msgspec

Keys = tuple[str | int, ...]
"""The way to a value in the file: ``("filemq", "serve", "folders", 0)``."""


class Fault(msgspec.Struct, frozen=True):
    """One thing that is wrong.

    Attributes:
        keys: where it is in the file; empty where it is in the file as a whole, or not in it.
        reason: what is wrong and what to do, without the place.
        variable: the environment variable that it is in, if it is in one.
    """

    keys: Keys
    reason: str
    variable: str = ""


class ConfigurationError(Exception):
    """A configuration cannot be used; `str()` has a line for each fault, without the lines of the file.

    Attributes:
        file: the file, None where there is none.
        faults: what is wrong, at least one.
    """

    def __init__(self, file: Path | None, faults: Sequence[Fault]) -> None:
        super().__init__("\n".join(f"{fault.variable or file}: {fault.reason}" for fault in faults))
        self.file, self.faults = file, tuple(faults)


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the end of a sentence about a name that there is none of: the one meant, or all that there are."""
    names = list(known)
    close = get_close_matches(name, names, n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(names)}"
