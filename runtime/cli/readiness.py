"""Tell the service manager that a server is ready: the datagram of systemd's ``sd_notify``.

Where nobody wants to know, which is where the variable `NOTIFY_SOCKET` is not set, nothing is done.
"""

from __future__ import annotations

import os
import socket
from collections.abc import MutableMapping
from contextlib import suppress

VARIABLE = "NOTIFY_SOCKET"


class Readiness:
    """Who wants to know; the variable is taken out of `environment`, as the server's children have no part in it."""

    def __init__(self, environment: MutableMapping[str, str] | None = None) -> None:
        address = (os.environ if environment is None else environment).pop(VARIABLE, "")
        # An abstract name is written with an at sign in front.
        self._address = f"\0{address[1:]}" if address.startswith("@") else address

    def tell(self) -> None:
        """Say that the server does its work now; a manager that cannot be told does not end it."""
        if not self._address:
            return
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
            line.setblocking(False)
            line.sendto(b"READY=1", self._address)
