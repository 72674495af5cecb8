"""One client as its server knows it: the dialog, the subscriptions, and whether it is alive.

Rules of FILEMQ v2:

- A command that the dialog does not allow is answered with RTFM, a malformed one with WAT, and ends
  the peering.
- A refused subscription is answered with SRSLY. Later commands of this client are ignored, until an
  OHAI begins another peering. A sum of credit that does not fit 64 bits is refused in the same way.
- Every command is a sign of life. A HUGZ is answered, and sent if nothing else was sent for a
  while.

`outflow` sends the files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from specwire.generated.filemq import (
    Hugz,
    HugzOk,
    Icanhaz,
    IcanhazOk,
    Kthxbai,
    Nom,
    Ohai,
    OhaiOk,
    Rtfm,
    Srsly,
)
from specwire.generated.filemq.machine import ServerHandler, dispatch_to_server
from specwire.generated.session import DialogSession
from specwire.runtime.filemq.catalogue import Catalogue, Entry
from specwire.runtime.filemq.codec import Command, Habits
from specwire.runtime.filemq.events import PeerClosed, PeerOpened, Subscribed
from specwire.runtime.filemq.names import covers, cut_reason, fault_in_name, fault_in_path, normalise_path
from specwire.runtime.filemq.outflow import MAX_CREDIT, Outflow
from specwire.runtime.filemq.resync import (
    ATTRIBUTES,
    INSIDE,
    LIST,
    MAX_STALE_OCTETS,
    MAX_WAITING,
    PRUNE,
    RENAMES,
    RESYNC,
    WHOLE,
    Beginning,
    read_beginning,
)
from specwire.runtime.filemq.sendqueue import ClientCache
from specwire.runtime.filemq.status import ClientStatus
from specwire.runtime.kernel.effects import DropPeer, HostEffect, Log, Now, Story, Wait, Wake
from specwire.runtime.kernel.events import PeerId
from specwire.runtime.kernel.log import Refused

MAX_SUBSCRIPTIONS = 1000
NAMES_SHOWN = 10
"""Names of files in the queue that a status has."""

Enclose = Callable[[str, str], str | None]
"""Given a path and the marks of an inbox's folders: the reason to refuse it, None to allow it."""

Authorise = Callable[[str, str], str | None]
"""Given the client's name and a path: the reason to refuse the subscription, None to allow it."""

Effects = Iterator[HostEffect]


class Terms(msgspec.Struct, frozen=True):
    """Settings for every client of a server; times in seconds."""

    chunk_octets: int
    heartbeat_s: float
    expiry_s: float
    authorise: Authorise
    habits: Habits
    enclose: Enclose


class Peering(ServerHandler[float, Story]):
    """State of one client. `handle` takes any command; the methods `on_…` get those that the dialog allows.

    Args:
        peerings: of the server. A peering removes itself from them when it ends.

    Attributes:
        user: authenticated name of the client; empty without authentication.
        refused: SRSLY was sent, and commands are ignored.
    """

    def __init__(
        self,
        peer: PeerId,
        peerings: dict[PeerId, Peering],
        files: Catalogue,
        *,
        terms: Terms,
        dialog: DialogSession,
        now: float,
        user: str = "",
    ) -> None:
        self.peer, self.user, self._peerings = peer, user, peerings
        self.label = peer.routing_id.hex()
        self.outflow = Outflow(peer, files, dialog, terms.chunk_octets, terms.habits.writes_in_place, now)
        self.refused = False
        self._files, self._terms, self._dialog = files, terms, dialog
        self._caches: dict[str, ClientCache] = {}
        self._received_at = self._since = now
        self._opened = self._resumed = self._asked_for_life = False

    def describe(self, now: float) -> ClientStatus:
        """Return the status of this client."""
        outflow = self.outflow
        return ClientStatus(
            label=self.label,
            user=self.user,
            subscriptions=tuple(self._caches),
            credit=outflow.credit,
            under_way=outflow.under_way,
            queued=len(outflow.queue),
            octets_sent=outflow.octets_sent,
            connected_s=round(now - self._since, 3),
            missing=tuple(outflow.queue.first(NAMES_SHOWN)),
            waits_for=outflow.waits_for,
        )

    def handle(self, command: Command, now: float) -> Story:
        """Handle a command of the client."""
        self._received_at = now
        if self.refused:
            return
        if violation := self._dialog.receive(command):
            yield from self.end(Rtfm(reason=cut_reason(str(violation))), str(violation), now)
        else:
            yield from dispatch_to_server(self, command, now)

    def on_ohai(self, message: Ohai, now: float) -> Story:
        """Accept the peering; where the dialog allows a second OHAI, it changes nothing."""
        yield self.outflow.send(OhaiOk(), now)
        if not self._opened:
            self._opened = True
            yield Log(PeerOpened(self.label, self.user))

    def on_icanhaz(self, message: Icanhaz, now: float) -> Story:
        """Subscribe the client, list files, or send the rest of a file to a subscribed client."""
        name = normalise_path(message.path)
        if LIST in message.options:
            yield from self._list(name, message, now)
            return
        claimed = read_beginning(message.options)
        if claimed is None or not self._may_resume(name):
            yield from self._subscribe(message, now)
        else:
            yield from self._resume(name, claimed, now, prune=PRUNE in message.options)

    def on_nom(self, message: Nom, now: float) -> Story:
        """Add credit, and send what it allows."""
        outflow = self.outflow
        if message.credit > MAX_CREDIT - outflow.credit:
            reason = f"brings the credit from {outflow.credit} beyond 2^64 - 1"
            yield from self._refuse("NOM", reason, now)
        else:
            outflow.credit += message.credit
            yield Wake(outflow.work_key)

    def on_hugz(self, message: Hugz, now: float) -> Story:
        """Answer."""
        yield self.outflow.send(HugzOk(), now)

    def on_hugz_ok(self, message: HugzOk, now: float) -> Story:
        """Ask again later; every message is a sign of life."""
        self._asked_for_life = False
        yield Wake(("life", self.peer))

    def on_kthxbai(self, message: Kthxbai, now: float) -> Story:
        """Forget the client."""
        yield from self.drop("said KTHXBAI", discard=True)

    def answer_malformed(self, answer: Command, now: float) -> Effects:
        """Answer a message that could not be decoded; the answer ends the peering."""
        self._received_at = now
        if not self.refused:
            yield from self.end(answer, f"sent a malformed message ({answer.NAME})", now)

    def stop(self, now: float) -> Effects:
        """Say goodbye, unless SRSLY has ended the dialog, or servers of this dialect do not."""
        reason = "the server stops"
        if self.refused or not self._terms.habits.server_says_goodbye:
            yield from self.drop(reason)
        else:
            yield from self.end(Kthxbai(), reason, now)

    def end(self, command: Command, reason: str, now: float) -> Effects:
        """Send a last command and close."""
        yield self.outflow.send(command, now)
        yield from self.drop(reason)

    def drop(self, reason: str, *, discard: bool = False) -> Effects:
        """Close without a command.

        Args:
            discard: the client does not expect what waits to be sent, either.
        """
        self._peerings.pop(self.peer, None)
        yield DropPeer(self.peer, discard)
        yield Log(PeerClosed(self.label, reason))

    def publish(self, entry: Entry) -> Story:
        """Send a file that is new or has new content."""
        if self._is_subscribed(entry.name):
            yield self.outflow.publish(entry)

    def withdraw(self, entry: Entry) -> Story:
        """Send the deletion of a file."""
        if self._is_subscribed(entry.name):
            yield self.outflow.withdraw(entry)

    def review(self, now: float) -> Story:
        """Refuse a client that has a subscription which is not allowed any more."""
        for path in () if self.refused else (*self._caches,):
            if fault := self._terms.authorise(self.user, path):
                yield from self._refuse(path, fault, now)
                return

    def keep_alive(self) -> Story:
        """Close a silent client, and ask for a sign of life if nothing was sent for a while."""
        terms = self._terms
        while True:
            now: float = yield Now()
            silence = now - self._received_at
            if silence >= terms.expiry_s:
                yield from self.drop(f"silent for {silence:.1f} s", discard=True)
                return
            due = self._received_at + terms.expiry_s
            if terms.habits.server_asks_for_life and not (self.refused or self._asked_for_life):
                ask_at = self.outflow.sent_at + terms.heartbeat_s
                if now >= ask_at:
                    self._asked_for_life = True
                    yield self.outflow.send(Hugz(), now)
                else:
                    due = min(due, ask_at)
            yield Wait(("life", self.peer), due)

    def _refuse(self, name: str, reason: str, now: float) -> Story:
        """Refuse a request (FILEMQ v2, "The ICANHAZ-OK Command"), and ignore the client from now on."""
        yield self.outflow.send(Srsly(reason=cut_reason(f"{name} {reason}")), now)
        self.refused = True
        self._caches.clear()
        yield self.outflow.stop()
        yield Log(Refused(name, reason, self.label))

    def _subscribe(self, command: Icanhaz, now: float) -> Story:
        path = normalise_path(command.path)
        if fault := self._fault_in_subscription(path, command):
            yield from self._refuse(path, fault, now)
            return
        is_new = path not in self._caches
        cache = self._caches.setdefault(path, ClientCache(path, self._files))
        cache.add(command.cache)
        if sum(each.stale_octets for each in self._caches.values()) > MAX_STALE_OCTETS:
            yield from self._refuse(path, "has a cache with too many unknown names", now)
            return
        yield self.outflow.send(IcanhazOk(), now)
        if is_new:
            yield Log(Subscribed(path, self.label))
        if WHOLE in command.options:
            self.outflow.in_place = False
        self.outflow.attributes = ATTRIBUTES in command.options
        self.outflow.renames = RENAMES in command.options
        cannot_ask = self._terms.habits.cannot_resync and not command.options
        if RESYNC in command.options or (is_new and cannot_ask):
            self._caches[path] = ClientCache(path, self._files)
            if PRUNE in command.options and self.outflow.queue.by_name < MAX_WAITING:
                self.outflow.queue_deletions(cache.stale())
            self.outflow.queue_lacking(cache.lacking())
            yield Wake(self.outflow.work_key)

    def _list(self, path: str, command: Icanhaz, now: float) -> Story:
        """List the files under a path to a client that may subscribe to it."""
        if fault := self._fault_in_subscription(path, command):
            yield from self._refuse(path, fault, now)
            return
        yield self.outflow.send(IcanhazOk(), now)
        yield self.outflow.list_files(path, folders=ATTRIBUTES in command.options)

    def _fault_in_subscription(self, path: str, command: Icanhaz) -> str | None:
        fault = (
            fault_in_path(path, self._terms.habits.longest_name_octets)
            or self._terms.authorise(self.user, path)
            or self._terms.enclose(path, dict(command.options).get(INSIDE, ""))
        )
        if fault is None and path not in self._caches and len(self._caches) >= MAX_SUBSCRIPTIONS:
            fault = f"is one subscription more than the {MAX_SUBSCRIPTIONS} allowed"
        return fault

    def _may_resume(self, name: str) -> bool:
        """Return whether to send the rest of this file: once for each client, which needs no more."""
        known = self._is_subscribed(name) and fault_in_name(name) is None
        return known and not self._resumed and not self.outflow.in_place

    def _resume(self, name: str, claimed: Beginning, now: float, *, prune: bool) -> Story:
        """Send the rest of a file to a subscribed client: this is no subscription, and cannot be refused."""
        self._resumed = True
        if self._files.find(name) is not None:
            for path, cache in self._caches.items():
                if covers(path, name):
                    cache.exclude(name)
            self.outflow.queue_rest(name, claimed)
        elif prune and not self._files.is_in_doubt(name):
            self.outflow.queue_deletions([name])
        yield self.outflow.send(IcanhazOk(), now)
        yield Wake(self.outflow.work_key)

    def _is_subscribed(self, name: str) -> bool:
        return any(covers(path, name) for path in self._caches)
