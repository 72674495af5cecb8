"""Sockets of the file system between Java and its Python workers, instead of those of the loopback network.

They take less of the processor, and they do not stand still: since Linux 6.17 a connection of TCP whose both ends have filled
their queues drops what the other end sends, the news that there is room again included, and neither end goes on. A worker that
is sent some megabytes and gives as many back comes to that, seldom, and then a query waits for ever.

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
