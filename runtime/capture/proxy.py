"""Record what two peers say that know nothing of it: octets pass by, messages are written down.

ZMTP 3 with the mechanisms NULL and PLAIN is read as it passes (`specwire.runtime.pcap.zmtp_side`); what the peers send is
never changed, delayed by a message that is not whole, or refused. What cannot be read is passed on and told: CURVE, which
is encrypted between the two, other versions of ZMTP, and whatever is none.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import count
from types import ModuleType
from uuid import uuid4

from specwire.runtime.capture.recorder import Recorder
from specwire.runtime.pcap.choosing import Chooser, Roles, role_names
from specwire.runtime.pcap.zmtp_side import Broken, Introduced, Message, Unreadable, ZmtpSide
from specwire.runtime.transport.relay import Passage

logger = logging.getLogger(__name__)

MAX_OCTETS = 64 << 20
"""The longest message that is put together; of a connection with a longer one nothing more is recorded."""

MAX_SAID = 20
"""Connections that cannot be read and are told one by one; the rest is counted."""


class Proxied:
    """Counts of a proxy: messages by the role of their sender, and connections that cannot be read, by the reason."""

    def __init__(self) -> None:
        self.messages: Counter[str] = Counter()
        self.octets = 0
        self.unread: Counter[str] = Counter()


class ProxyWatch:
    """Gives the watcher of each connection (`specwire.runtime.transport.relay.Watch`).

    Args:
        recorders: take the messages, by the protocol that they are of; what is of none of them goes to the first.
        packages: of these protocols, in the same order; they tell the roles.
    """

    def __init__(self, recorders: Mapping[str, Recorder], packages: Sequence[ModuleType]) -> None:
        self.proxied = Proxied()
        self._recorders, self._packages = recorders, packages
        self._session = uuid4().hex[:8]
        self._numbers = count(1)

    def __call__(self, passage: Passage) -> _Watched:
        return _Watched(self.begin(passage.address), passage.address, self._packages, self.proxied)

    def begin(self, address: str) -> Recording:
        """Return what records a new conversation with a client at `address`."""
        conversation = f"{self._session}-{next(self._numbers)}"
        return Recording(self._recorders, self._packages, self.proxied, conversation, address)


class Recording:
    """One conversation: gives each message its protocol and the role of its sender.

    Attributes:
        peer: the client, by the identity that it gave itself in hexadecimal, else its address.
    """

    def __init__(
        self,
        recorders: Mapping[str, Recorder],
        packages: Sequence[ModuleType],
        proxied: Proxied,
        conversation: str,
        peer: str,
    ) -> None:
        self.peer = peer
        self._recorders, self._proxied = recorders, proxied
        self._first = next(iter(recorders))
        self._conversation = conversation
        self._chooser, self._roles = Chooser(packages), Roles()
        self._several = any(len(role_names(package)) > 2 for package in packages) or len(packages) > 1

    def take(self, frames: Sequence[bytes], *, from_opener: bool) -> None:
        """Record a message."""
        protocol, role = self._place(frames, from_opener)
        self._proxied.messages[role] += 1
        self._proxied.octets += sum(map(len, frames))
        self._recorders[protocol].record(
            sender=role, peer=self.peer, conversation=self._conversation, frames=frames
        )

    def _place(self, frames: Sequence[bytes], from_opener: bool) -> tuple[str, str]:
        """The protocol and the letter of the sender; where there are several of either, the message is decoded."""
        reading = self._chooser.decode(frames) if self._several else None
        message = None if reading is None else reading.message
        role = self._roles.of(self._chooser.package, message, is_listener=not from_opener)
        return (reading and reading.protocol) or self._first, role


class _Watched:
    """One connection."""

    def __init__(
        self, recording: Recording, address: str, packages: Sequence[ModuleType], proxied: Proxied
    ) -> None:
        self._recording, self._address, self._proxied = recording, address, proxied
        self._reads = True
        plausible = Chooser(packages).reads
        self._sides = {
            from_opener: ZmtpSide(is_whole=True, plausible=plausible, max_octets=MAX_OCTETS)
            for from_opener in (True, False)
        }

    def pass_on(self, octets: bytes, *, from_opener: bool) -> bytes:
        """Note the messages that these octets complete; see `Watcher.pass_on`."""
        if self._reads:
            try:
                self._read(octets, from_opener)
            except Exception:
                logger.exception("a connection of %s is no longer recorded", self._address)
                self._stop("a fault of the proxy")
        return octets

    def _read(self, octets: bytes, from_opener: bool) -> None:
        for event in self._sides[from_opener].feed(octets):
            match event:
                case Message(frames=frames):
                    self._recording.take(frames, from_opener=from_opener)
                case Introduced(identity=identity) if from_opener and identity:
                    self._recording.peer = identity.hex()
                case Unreadable(why=why) | Broken(why=why):
                    self._stop(why)
                    return
                case _:
                    pass

    def _stop(self, why: str) -> None:
        self._reads = False
        self._sides.clear()
        self._proxied.unread[why] += 1
        if self._proxied.unread.total() <= MAX_SAID:
            logger.warning("a connection of %s is passed on and not recorded: %s", self._address, why)
