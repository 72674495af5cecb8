"""``log``: lines of RFC 5424, kept by the broker that got them, and by rank 0; ``log.dmesg`` gives them out.

``log.append`` takes one line as its payload. One that is sent upstream passes by all brokers on its way to rank 0. ``log.dmesg {"follow","nobacklog"}`` streams the lines there are
(not with `nobacklog`), each as text, and with `follow` those that come.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from specwire.generated.flux import EPROTO
from specwire.runtime.flux.answering import pack_text
from specwire.runtime.flux.credentials import USER
from specwire.runtime.flux.errors import FluxError
from specwire.runtime.flux.flags import UPSTREAM
from specwire.runtime.flux.services.service import Call, Service, serves


class Dmesg(msgspec.Struct):
    """The payload of ``log.dmesg``."""

    follow: bool = False
    nobacklog: bool = False


class LogService(Service):
    """The log of one broker."""

    __slots__ = ()

    @serves("append", USER)
    def append(self, call: Call) -> None:
        """Add a line."""
        request = call.request
        passing = bool(self.broker.rank and request.flags & UPSTREAM)
        self.broker.journal.add_line(request.payload, passing=passing)
        call.acknowledge()

    @serves("clear")
    def clear(self, call: Call) -> None:
        """Forget the lines there are."""
        self.broker.journal.clear()
        call.acknowledge()

    @serves("dmesg", USER)
    def dmesg(self, call: Call) -> None:
        """Give the lines out."""
        wanted = call.read(Dmesg)
        if not call.is_stream:
            raise FluxError(EPROTO, "dmesg is a stream")
        if not wanted.nobacklog:
            for line in self.broker.journal.lines():
                call.respond_octets(pack_text(line))
        if wanted.follow:
            self.keep(call)
        else:
            call.end()

    def logged(self, line: Callable[[], str]) -> None:
        """Give a new line to those who follow."""
        followers = self.kept()
        if followers:
            payload = pack_text(line())
            for call in followers:
                call.respond_octets(payload)
