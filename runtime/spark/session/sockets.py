"""Unix domain sockets between Java and its Python workers, instead of loopback TCP.

On Linux 6.18 a TCP connection rarely hangs for ever when a worker receives some megabytes and
returns as many. Both ends have full queues, and the worker's end drops the segments that Java
sends, including window updates. Since 6.17, Linux drops segments beyond the window; its counters
confirmed this. The hang was not reproduced with plain sockets.

Spark trusts every process that can reach such a socket as its worker, so sockets are in folders of
mode 0700. A socket's name takes 43 octets after the folder's name; every system allows 104 in
total. If the temporary folder has a long name, a folder in /tmp is used.
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
"""Maximum length of a folder's name in octets."""


@contextmanager
def socket_settings(own: Path) -> Iterator[Mapping[str, str]]:
    """Yield the settings that put sockets into `own`, a folder of mode 0700, or a temporary folder.

    The temporary folder exists for the time of the block. If neither is usable, no setting is
    returned and Spark uses TCP.
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
