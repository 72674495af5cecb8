"""The server's engine: frames and events in, actions out; no socket, file, thread or clock.

It keeps one `Peering` for each client that opened with OHAI, finds out what a message is, and gives it to that
client's peering. A client without a peering gets no state: OHAI opens one, anything else is unexpected and
answered with RTFM. `now` is any clock in seconds that does not go backwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count

from specwire.generated.errors import DecodeError
from specwire.generated.filemq import Ohai, Rtfm, Srsly
from specwire.runtime.filemq.actions import Report, Send, ServerAction
from specwire.runtime.filemq.catalogue import Entry, Listing
from specwire.runtime.filemq.dialect import FILEMQ, Command, Dialect
from specwire.runtime.filemq.peering import Authorise, Enclose, Peering, Terms
from specwire.runtime.filemq.progress import UnderWay
from specwire.runtime.filemq.status import ClientStatus
from specwire.runtime.kernel.log import Refused

CHUNK_OCTETS = 2 << 20
MAX_CLIENTS = 10_000


def allow_all(user: str, path: str) -> str | None:
    """Allow every subscription."""
    return None


class ServerEngine:
    """All clients of one server.

    Args:
        files: what is published.
        chunk_octets: the largest chunk.
        timers: seconds by name (``heartbeat``, ``expiry``); default: the dialect's.
        authorise: asked for each subscription.
        enclose: asked whether an inbox lies in what is published.
        max_clients: a further OHAI is refused with SRSLY.
    """

    def __init__(
        self,
        files: Listing,
        *,
        chunk_octets: int = CHUNK_OCTETS,
        timers: Mapping[str, float] | None = None,
        authorise: Authorise = allow_all,
        enclose: Enclose = allow_all,
        max_clients: int = MAX_CLIENTS,
        dialect: Dialect = FILEMQ,
    ) -> None:
        times = {**dialect.timers, **(timers or {})}
        self._terms = Terms(
            chunk_octets,
            times["heartbeat"],
            times["expiry"],
            authorise,
            habits=dialect.habits,
            enclose=enclose,
        )
        self._files, self._dialect, self._max_clients = files, dialect, max_clients
        self._peerings: dict[bytes, Peering] = {}
        self._numbers = count()

    @property
    def clients(self) -> int:
        """Number of open peerings."""
        return len(self._peerings)

    def under_way(self) -> Iterator[UnderWay]:
        """Yield the file under way to each client that has one."""
        for peering in self._peerings.values():
            file = peering.outflow.under_way
            if file is not None:
                yield file

    def describe(self, now: float) -> tuple[ClientStatus, ...]:
        """Tell how each client is."""
        return tuple(peering.describe(now) for peering in self._peerings.values())

    def credit(self, peer: bytes) -> int:
        """Return the octets that may still be sent to `peer`."""
        peering = self._peerings.get(peer)
        return 0 if peering is None else peering.outflow.credit

    def receive(
        self, peer: bytes, frames: Sequence[bytes], now: float, *, user: str = ""
    ) -> list[ServerAction]:
        """Take a message from `peer`, whatever its octets are.

        Args:
            user: the name that the peer has proved to have.
        """
        try:
            commands = self._dialect.decode(frames)
        except DecodeError as error:
            return self._answer_malformed(peer, error, now)
        return [action for command in commands for action in self.obey(peer, command, now, user=user)]

    def obey(self, peer: bytes, command: Command, now: float, *, user: str = "") -> list[ServerAction]:
        """Take a decoded command from `peer`, which has proved to be `user`."""
        peering = self._peerings.get(peer)
        if peering is not None and peering.refused and isinstance(command, Ohai):
            # "The SRSLY Command": the client may connect again, with a routing id that may be the one it had.
            again = self._tidy(peering, peering.drop("begins anew after SRSLY"))
            return [*again, *self.obey(peer, command, now, user=user)]
        if peering is None:
            if not isinstance(command, Ohai):
                return [Send(Rtfm(reason=f"{command.NAME} before OHAI"), peer)]
            if len(self._peerings) >= self._max_clients:
                return [Send(Srsly(reason=f"already {self._max_clients} clients"), peer)]
            peering = self._open(peer, now, user)
        return self._tidy(peering, peering.obey(command, now))

    def displace(self, peer: bytes, user: str) -> list[ServerAction]:
        """A message came from `peer` under the name `user`: a peering under another name is over.

        A client chooses its routing id, and may choose that of one that has just left.
        """
        peering = self._peerings.get(peer)
        if peering is None or peering.user == user:
            return []
        return self._tidy(peering, peering.drop("another client has its routing id now"))

    def publish(self, entry: Entry, now: float, *, replaces: bool = False) -> list[ServerAction]:
        """Tell every subscriber that a file is new, or has new content (`replaces`)."""
        peerings = list(self._peerings.values())
        return [action for p in peerings for action in p.publish(entry, now, replaces=replaces)]

    def withdraw(self, name: str, now: float) -> list[ServerAction]:
        """Tell every subscriber that a file is gone."""
        return [action for p in list(self._peerings.values()) for action in p.withdraw(name, now)]

    def chunk_read(self, peer: bytes, transfer: int, chunk: bytes, now: float) -> list[ServerAction]:
        """Answer a `ReadChunk`: the octets, at least one and at most as many as were asked for."""
        peering = self._peerings.get(peer)
        return [] if peering is None else peering.outflow.chunk_read(transfer, chunk, now)

    def part_checked(self, peer: bytes, transfer: int, sha1: str, now: float) -> list[ServerAction]:
        """Answer a `CheckPart`: the digest in upper-case hexadecimal."""
        peering = self._peerings.get(peer)
        return [] if peering is None else peering.outflow.part_checked(transfer, sha1, now)

    def file_moved(self, peer: bytes, transfer: int, now: float) -> list[ServerAction]:
        """Answer a `ReadChunk` or a `CheckPart`: the file is no longer what the listing said; the listing is right again."""
        peering = self._peerings.get(peer)
        return [] if peering is None else peering.outflow.file_moved(transfer, now)

    def resume(self, peer: bytes, now: float) -> list[ServerAction]:
        """Answer a `Pause`."""
        peering = self._peerings.get(peer)
        return [] if peering is None else peering.outflow.resume(now)

    def gone(self, peer: bytes, reason: str) -> list[ServerAction]:
        """The network says that `peer` can not be reached."""
        peering = self._peerings.get(peer)
        return [] if peering is None else self._tidy(peering, peering.drop(reason))

    def tick(self, now: float) -> list[ServerAction]:
        """Let time pass: heartbeats, and an end to silent clients."""
        return [action for p in list(self._peerings.values()) for action in self._tidy(p, p.tick(now))]

    def review(self, now: float) -> list[ServerAction]:
        """Judge every subscription anew, because what `authorise` answers has changed."""
        return [action for p in list(self._peerings.values()) for action in p.review(now)]

    def close(self, now: float) -> list[ServerAction]:
        """End every peering."""
        return [action for p in list(self._peerings.values()) for action in self._tidy(p, p.stop(now))]

    def _open(self, peer: bytes, now: float, user: str) -> Peering:
        peering = self._peerings[peer] = Peering(
            peer,
            self._files,
            terms=self._terms,
            dialog=self._dialect.open_dialog("S"),
            number=self._numbers.__next__,
            now=now,
            user=user,
        )
        return peering

    def _tidy(self, peering: Peering, actions: list[ServerAction]) -> list[ServerAction]:
        if peering.closed:
            self._peerings.pop(peering.peer, None)
        return actions

    def _answer_malformed(self, peer: bytes, error: DecodeError, now: float) -> list[ServerAction]:
        """FILEMQ v2, "Protocol Signature", "The WAT Command": silence, RTFM or WAT, as the profile says."""
        answer = self._dialect.answer("S", error)
        report = Report(Refused(error.message_name or "a message", str(error), peer.hex()))
        peering = self._peerings.get(peer)
        if answer is None:
            return [report]
        if peering is None:
            return [Send(answer, peer), report]
        return [report, *self._tidy(peering, peering.answer_malformed(answer, now))]
