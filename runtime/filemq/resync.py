"""Options of ICANHAZ: what a client asks for beside changes, and what it holds.

``RESYNC=1`` (FILEMQ v2, "The ICANHAZ Command") asks for everything that a client lacks. The client
lists its files in the cache as ``name=digest``. A dictionary has 255 entries and an entry 255
octets, so a larger cache travels as several ICANHAZ of the same path whose entries add up. Only the
last asks for RESYNC. A name too long for an entry is omitted, and its file is sent again.

The other options are ours, and other peers ignore them:

    PRUNE=1     delete what the cache names and the publication no longer has. It is asked for,
    because
                a cache may list files of another origin. WHOLE=1     the client moves files to
                their places when they are complete; others write in place. INSIDE      marks of the
                folders that contain the inbox, which only this machine can compare. A server that
                publishes one of them refuses the subscription: it would send copies of copies.
                RESUME=size:sha-1   the client holds so much of this file. If the file still begins
                so, the server sends the rest first, from this offset; otherwise all of it.
                ATTRIBUTES=1    the client asks for the headers `mode` (four octal digits) and
                `mtime` (nanoseconds since 1970) of each file, and for empty folders. Their names
                end with a slash. RENAMES=1   the client keeps deleted files for a while. A file
                with the content of one that was just withdrawn is then sent as its end alone
                (offset = size), with the header `renamed`. A client that has lost the content asks
                again without this option. LIST=1      the client asks which files are published
                under the path. This is no subscription. Each file, and with ATTRIBUTES each empty
                folder, is sent as its end alone (offset = size, an empty chunk), without credit.
                The header `left` says how many commands of the listing may follow. The last one
                names the path, with `left` = 0 and no digest, so an empty listing ends too. A newer
                request replaces a listing that has not ended.

A server accepts RESUME from a client that is subscribed to the file already. So the request grants
nothing, is no subscription, and cannot be refused. Only a file that was announced with size and
digest can be resumed: these prove that its parts belong together.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

MAX_STALE_OCTETS = 64 << 20
"""Most octets of all names that one client lists and that are not published."""

MAX_WAITING = 250_000
"""With so many changes waiting, a client gets no more deletions of files that are not published."""

RESYNC = ("RESYNC", "1")
PRUNE = ("PRUNE", "1")
WHOLE = ("WHOLE", "1")
INSIDE = "INSIDE"
ATTRIBUTES = ("ATTRIBUTES", "1")
RENAMES = ("RENAMES", "1")
LIST = ("LIST", "1")
LEFT = "left"
"""Header of the commands that answer `LIST`."""

RESUME = "RESUME"
RESUME_FROM_OCTETS = 1 << 20
"""A smaller file is sent again, which is faster than to keep it."""

_RESUME_VALUE = re.compile("([1-9][0-9]{0,18}):([0-9A-Fa-f]{40})")


class Beginning(NamedTuple):
    """The beginning of a file that a client holds: its octets, and their SHA-1 in upper case."""

    size: int
    sha1: str


def read_beginning(options: Sequence[tuple[str, str]]) -> Beginning | None:
    """Return the value of RESUME; None if the option is absent, or malformed and so not ours."""
    match = _RESUME_VALUE.fullmatch(dict(options).get(RESUME, ""))
    return None if match is None else Beginning(int(match[1]), match[2].upper())
