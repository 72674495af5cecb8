"""What a run left unfinished, and the note that makes it known to the next one.

A file under way has a name of its own in the inbox's folder, which says nothing of the file. One that is to be
kept gets a note beside it with its virtual name, as JSON, so that a note which a kill or a full disk cut off is
seen to be none: a name that is too short would be another file's. No note is written for small files.
"""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from typing import NamedTuple

import msgspec

from specwire.runtime.filemq.names import LONGEST_NAME_OCTETS, fault_in_name

UNFINISHED = "unfinished"
NOTE = ".name"
MAX_NOTE_OCTETS = 8 * LONGEST_NAME_OCTETS
"""More than a name needs when each of its octets is escaped."""

_LEAF = re.compile(UNFINISHED + "-([0-9]{1,15})")
_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC
_decoder = msgspec.json.Decoder(str)


class Leftover(NamedTuple):
    """A file that was left unfinished: its number, the virtual name it is to have, and its size in octets."""

    number: int
    name: str
    size: int


def leaf_of(number: int) -> str:
    """Return what an unfinished file is called in the inbox's folder."""
    return f"{UNFINISHED}-{number}"


def write_note(folder: int, number: int, name: str) -> None:
    """Note what the unfinished file is; raises OSError, and then nothing is noted."""
    leaf, octets = leaf_of(number) + NOTE, msgspec.json.encode(name)
    descriptor = os.open(leaf, _FLAGS | os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666, dir_fd=folder)
    try:
        if os.write(descriptor, octets) != len(octets):
            raise OSError("the note could be written only in part")
    except OSError:
        remove_note(folder, number)
        raise
    finally:
        os.close(descriptor)


def remove_note(folder: int, number: int) -> None:
    """Remove the note, where there is one."""
    with suppress(FileNotFoundError):
        os.unlink(leaf_of(number) + NOTE, dir_fd=folder)


def find_leftover(folder: int) -> Leftover | None:
    """Return what can be gone on with, and remove whatever else was left unfinished; raises OSError.

    Of several (a kill can come while one is whole and the next has begun) the largest is kept.
    """
    leaves = [leaf for leaf in os.listdir(folder) if leaf.startswith(UNFINISHED)]
    found = [left for leaf in leaves if (left := _read_leftover(folder, leaf)) is not None]
    best = max(found, key=lambda left: left.size, default=None)
    keep = set() if best is None else {leaf_of(best.number), leaf_of(best.number) + NOTE}
    for leaf in leaves:
        if leaf not in keep:
            os.unlink(leaf, dir_fd=folder)
    return best


def _read_leftover(folder: int, leaf: str) -> Leftover | None:
    match = _LEAF.fullmatch(leaf)
    if match is None:
        return None
    try:
        state = os.stat(leaf, dir_fd=folder, follow_symlinks=False)
        descriptor = os.open(leaf + NOTE, _FLAGS | os.O_RDONLY | os.O_NONBLOCK, dir_fd=folder)
        try:
            name = _decoder.decode(os.read(descriptor, MAX_NOTE_OCTETS))
        finally:
            os.close(descriptor)
    except (OSError, msgspec.MsgspecError):
        return None
    fit = stat.S_ISREG(state.st_mode) and state.st_size > 0
    return (
        Leftover(int(match[1]), name, state.st_size)
        if fit and not fault_in_name(name, LONGEST_NAME_OCTETS)
        else None
    )
