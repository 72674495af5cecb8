"""Sockets of the file system between Java and its Python workers, instead of those of the loopback network.

A connection of TCP was seen to stand still for ever on Linux 6.18, seldom, where a worker is sent some megabytes and gives as many
back: both ends have full queues, and the worker's drops what Java sends, the news that there is room again included. Linux refuses
what comes beyond the window since 6.17, and its counters told so; bare sockets were not brought to it.

Spark takes whoever can reach such a socket for a worker of its own, so sockets are in folders of mode 0700. Their names have 43
octets behind the folder's, of the 104 that every system has room for; where temporary files have long names, a folder of /tmp
is taken.
"""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

SHORT = Path("/tmp")
LONGEST = 61
"""Octets that a folder's name may have."""


@contextmanager
def socket_settings(own: Path) -> Iterator[Mapping[str, str]]:
    """Give the settings that put sockets into `own`, a folder of mode 0700, or into one that is there for the time of a block.

    Nothing is set where neither will do: Spark uses TCP then.
    """
    if not hasattr(socket, "AF_UNIX"):
        yield {}
    elif _fits(own):
        yield _settings(own)
    elif os.access(SHORT, os.W_OK):
        with tempfile.TemporaryDirectory(prefix="specwire-", dir=SHORT, ignore_cleanup_errors=True) as name:
            yield _settings(Path(name))
    else:
        yield {}


def _fits(folder: Path) -> bool:
    return len(os.fsencode(folder)) <= LONGEST


def _settings(folder: Path) -> Mapping[str, str]:
    return {
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.unix.domain.socket.dir": str(folder),
    }
