"""One client as the server sees it: the dialog, its subscriptions, and whether it is alive.

Rules carried out here, from FILEMQ v2:

- a command that the dialog does not allow is answered with RTFM, a malformed one with WAT, and the peering is over;
- a refused subscription is answered with SRSLY, and every later command of this client is discarded, up to an OHAI,
  which begins anew; a sum of credit that does not fit 64 bits is refused in the same way;
- every command is a sign of life; a HUGZ is answered, and sent where nothing else was sent for a while.

What is sent, and when, is `outflow`'s part.
"""

from __future__ import annotations

from collections.abc import Callable

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
from specwire.runtime.filemq.actions import Close, Report, Send, ServerAction
from specwire.runtime.filemq.catalogue import Entry, Listing
from specwire.runtime.filemq.dialect import Command, Dialog, Habits, OutOfTurnError
from specwire.runtime.filemq.events import PeerClosed, PeerOpened, Subscribed
from specwire.runtime.filemq.names import covers, cut_reason, fault_in_name, fault_in_path, normalise_path
from specwire.runtime.filemq.outflow import Outflow
from specwire.runtime.filemq.resuming import Beginning, read_beginning
from specwire.runtime.filemq.resync import (
    INSIDE,
    MAX_STALE_OCTETS,
    MAX_WAITING,
    PRUNE,
    RESYNC,
    WHOLE,
    ClientCache,
)
from specwire.runtime.filemq.status import ClientStatus
from specwire.runtime.kernel.log import Refused

MAX_SUBSCRIPTIONS = 1000

Enclose = Callable[[str, str], str | None]
"""Given a path and the marks of an inbox's folders: the reason to refuse it, None to allow it."""

Authorise = Callable[[str, str], str | None]
"""Given the client's name and a path: the reason to refuse the subscription, None to allow it."""


class Terms(msgspec.Struct, frozen=True):
    """What holds for every client of a server; times in seconds."""

    chunk_octets: int
    heartbeat_s: float
    expiry_s: float
    authorise: Authorise
    habits: Habits
    enclose: Enclose


class Peering(ServerHandler[float, list[ServerAction]]):
    """The state of one client, and what each event makes of it.

    `obey` takes any command; the handler's methods take those that the dialog allows, with the time.

    Attributes:
        user: the name that the client has proved to have; empty where nobody has to.
        refused: SRSLY was said, and nothing of this client is heard any more.
    """

    def __init__(
        self,
        peer: bytes,
        files: Listing,
        *,
        terms: Terms,
        dialog: Dialog,
        number: Callable[[], int],
        now: float,
        user: str = "",
    ) -> None:
        self.peer, self.user = peer, user
        self.label = peer.hex()
        self.closed = False
        self.outflow = Outflow(peer, files, chunk_octets=terms.chunk_octets, send=self._send, number=number)
        self.outflow.in_place = terms.habits.writes_in_place
        self._files, self._terms, self._dialog = files, terms, dialog
        self._caches: dict[str, ClientCache] = {}
        self._heard = self._sent = self._since = now
        self._opened = self.refused = self._resumed = self._asked_for_life = False

    def describe(self, now: float) -> ClientStatus:
        """Tell how this client is."""
        outflow = self.outflow
        return ClientStatus(
            label=self.label,
            user=self.user,
            subscriptions=tuple(self._caches),
            credit=outflow.credit,
            under_way=outflow.under_way,
            queued=outflow.queued,
            octets_sent=outflow.octets_sent,
            connected_s=round(now - self._since, 3),
        )

    def obey(self, command: Command, now: float) -> list[ServerAction]:
        """Take a command from the client."""
        self._heard = now
        if self.refused:
            return []
        violation = self._dialog.receive(command)
        if violation is not None:
            return self.end(Rtfm(reason=cut_reason(str(violation))), str(violation), now)
        return dispatch_to_server(self, command, now)

    def on_ohai(self, message: Ohai, now: float) -> list[ServerAction]:
        """Accept the peering; where the dialog allows a second OHAI, it changes nothing."""
        news = [] if self._opened else [Report(PeerOpened(self.label, self.user))]
        self._opened = True
        return [self._send(OhaiOk(), now), *news]

    def on_icanhaz(self, message: Icanhaz, now: float) -> list[ServerAction]:
        """Subscribe the client, or refuse; or send the rest of a file to one that is subscribed to it already."""
        name = normalise_path(message.path)
        claimed = read_beginning(message.options)
        if claimed is None or not self._may_resume(name):
            return self._subscribe(message, now)
        return self._go_on(name, claimed, now, prune=PRUNE in message.options)

    def on_nom(self, message: Nom, now: float) -> list[ServerAction]:
        """Add credit, and send what it allows."""
        if self.outflow.grant(message.credit):
            return self.outflow.pump(now)
        return self._refuse("NOM", f"brings the credit from {self.outflow.credit} beyond 2^64 - 1", now)

    def on_hugz(self, message: Hugz, now: float) -> list[ServerAction]:
        """Show life."""
        return [self._send(HugzOk(), now)]

    def on_hugz_ok(self, message: HugzOk, now: float) -> list[ServerAction]:
        """Be content: every message is a sign of life already."""
        self._asked_for_life = False
        return []

    def on_kthxbai(self, message: Kthxbai, now: float) -> list[ServerAction]:
        """Forget the client."""
        return self.drop("said KTHXBAI")

    def answer_malformed(self, answer: Command, now: float) -> list[ServerAction]:
        """Answer a message that could not be decoded; an error ends the peering, whichever it is."""
        self._heard = now
        return [] if self.refused else self.end(answer, f"sent a malformed message ({answer.NAME})", now)

    def stop(self, now: float) -> list[ServerAction]:
        """The server stops: say so, unless SRSLY has ended the dialog before, or the dialect has no word for it."""
        reason = "the server stops"
        silent = self.refused or not self._terms.habits.server_says_goodbye
        return self.drop(reason) if silent else self.end(Kthxbai(), reason, now)

    def end(self, command: Command, reason: str, now: float) -> list[ServerAction]:
        """Send a last command and close."""
        return [self._send(command, now), *self.drop(reason)]

    def drop(self, reason: str) -> list[ServerAction]:
        """Close without a word."""
        self.closed = True
        return [*self.outflow.stop(), Close(reason, self.peer), Report(PeerClosed(self.label, reason))]

    def publish(self, entry: Entry, now: float, *, replaces: bool) -> list[ServerAction]:
        """A file is new, or has new content (`replaces`)."""
        if not self._is_subscribed(entry.name):
            return []
        return self.outflow.publish(entry, now, replaces=replaces)

    def withdraw(self, name: str, now: float) -> list[ServerAction]:
        """A file is gone."""
        return self.outflow.withdraw(name, now) if self._is_subscribed(name) else []

    def review(self, now: float) -> list[ServerAction]:
        """What is allowed has changed: refuse a client that has a subscription that it may not have any more."""
        for path in () if self.refused else self._caches:
            if fault := self._terms.authorise(self.user, path):
                return self._refuse(path, fault, now)
        return []

    def tick(self, now: float) -> list[ServerAction]:
        """Close a silent client; ask one for life to which nothing was sent for a while."""
        silence = now - self._heard
        if silence >= self._terms.expiry_s:
            return self.drop(f"silent for {silence:.1f} s")
        idle = self._terms.habits.server_asks_for_life and now - self._sent >= self._terms.heartbeat_s
        if idle and not self.refused and not self._asked_for_life:
            self._asked_for_life = True
            return [self._send(Hugz(), now)]
        return []

    def _send(self, command: Command, now: float) -> Send:
        if violation := self._dialog.send(command):
            raise OutOfTurnError(str(violation))
        self._sent = now
        return Send(command, self.peer)

    def _refuse(self, name: str, reason: str, now: float) -> list[ServerAction]:
        """FILEMQ v2, "The ICANHAZ-OK Command": SRSLY, and nothing of this client is heard any more."""
        srsly = self._send(Srsly(reason=cut_reason(f"{name} {reason}")), now)
        self.refused = True
        self._caches.clear()
        return [srsly, *self.outflow.stop(), Report(Refused(name, reason, self.label))]

    def _subscribe(self, command: Icanhaz, now: float) -> list[ServerAction]:
        path = normalise_path(command.path)
        fault = (
            fault_in_path(path, self._terms.habits.longest_name_octets)
            or self._terms.authorise(self.user, path)
            or self._terms.enclose(path, dict(command.options).get(INSIDE, ""))
        )
        if fault is None and path not in self._caches and len(self._caches) >= MAX_SUBSCRIPTIONS:
            fault = f"is one subscription more than the {MAX_SUBSCRIPTIONS} allowed"
        if fault is not None:
            return self._refuse(path, fault, now)
        is_new = path not in self._caches
        cache = self._caches.setdefault(path, ClientCache(path, self._files))
        cache.add(command.cache)
        if sum(each.stale_octets for each in self._caches.values()) > MAX_STALE_OCTETS:
            return self._refuse(path, "has a cache with too many unknown names", now)
        actions: list[ServerAction] = [self._send(IcanhazOk(), now)]
        if is_new:
            actions.append(Report(Subscribed(path, self.label)))
        if WHOLE in command.options:
            self.outflow.in_place = False
        if RESYNC in command.options or (is_new and self._cannot_ask(command)):
            self._caches[path] = ClientCache(path, self._files)
            if PRUNE in command.options and self.outflow.waiting < MAX_WAITING:
                self.outflow.queue_deletions(cache.stale())
            self.outflow.queue_lacking(cache.lacking())
        return [*actions, *self.outflow.pump(now)]

    def _may_resume(self, name: str) -> bool:
        """Tell whether to send the rest of this file; once for each client, as it needs no more."""
        known = self._is_subscribed(name) and fault_in_name(name) is None
        return known and not self._resumed and not self.outflow.in_place

    def _go_on(self, name: str, claimed: Beginning, now: float, *, prune: bool) -> list[ServerAction]:
        """Send the rest of a file. The client is subscribed to it: this is no subscription, and not refused."""
        self._resumed = True
        if self._files.find(name) is not None:
            for path, cache in self._caches.items():
                if covers(path, name):
                    cache.pass_over(name)
            self.outflow.queue_rest(name, claimed)
        elif prune and not self._files.is_in_doubt(name):
            self.outflow.queue_deletions([name])
        return [self._send(IcanhazOk(), now), *self.outflow.pump(now)]

    def _cannot_ask(self, command: Icanhaz) -> bool:
        """Tell whether this client would not ask for RESYNC even if it wanted it."""
        return self._terms.habits.cannot_resync and not command.options

    def _is_subscribed(self, name: str) -> bool:
        return any(covers(path, name) for path in self._caches)
