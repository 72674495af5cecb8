"""``overlay``: the tree as one broker sees it: itself, its children, and what their subtrees say.

``overlay.health`` tells the status of this broker's subtree and of each child's, as a stream again whenever it
changes. ``overlay.topology {"rank"}`` tells the shape of a subtree, ``overlay.lspeer`` who is connected and since
when silent. ``overlay.monitor`` streams each child whose status changes or that turns torpid.
``overlay.disconnect-subtree {"rank"}`` makes a child and all below it stop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from specwire.runtime.flux.control import Status
from specwire.runtime.flux.credentials import USER
from specwire.runtime.flux.errors import EHOSTUNREACH, ENOENT, EOVERFLOW, FluxError
from specwire.runtime.flux.services.service import Call, Service, serves

if TYPE_CHECKING:
    from specwire.runtime.flux.broker import BrokerEngine
    from specwire.runtime.flux.children import Child

MAX_DEPTH = 256
"""Levels of a topology that is told: readers of JSON do not go much deeper."""


class Rank(msgspec.Struct):
    """The payload of requests about one rank."""

    rank: int


class OverlayService(Service):
    """The neighbours of one broker. Health and monitor are streams of their own kind, told apart by the topic."""

    __slots__ = ()

    @serves("health", USER)
    def health(self, call: Call) -> None:
        """Tell how well the subtree is."""
        call.respond(health(self.broker))
        self.keep(call)

    @serves("monitor", USER)
    def monitor(self, call: Call) -> None:
        """Tell of each child that changes; those that are there are told at once."""
        for child in self.broker.overlay.children.known.values():
            call.respond(change(child))
        self.keep(call)

    @serves("topology", USER)
    def topology(self, call: Call) -> None:
        """Tell the shape of the subtree of a rank that is here or below."""
        rank, tree = call.read(Rank).rank, self.broker.settings.tree
        if rank < 0 or not tree.is_below(self.broker.rank, rank):
            raise FluxError(ENOENT, f"rank {rank} is not in this subtree")
        if tree.height - tree.level(rank) > MAX_DEPTH:
            raise FluxError(EOVERFLOW, f"the subtree has more than {MAX_DEPTH} levels")
        call.respond(topology(self.broker, rank))

    @serves("lspeer", USER)
    def list_peers(self, call: Call) -> None:
        """Tell the children that are there, and for how many seconds each was silent."""
        now, children = self.broker.now, self.broker.overlay.children.present.values()
        call.respond({child.uuid: {"rank": child.rank, "idle": now - child.heard} for child in children})

    @serves("disconnect-subtree")
    def disconnect_subtree(self, call: Call) -> None:
        """Make a child stop, with all that is below it."""
        rank, children = call.read(Rank).rank, self.broker.overlay.children
        if rank not in children.ranks:
            raise FluxError(ENOENT, f"rank {rank} is not a child of this broker")
        child = children.at(rank)
        if child is None:
            raise FluxError(EHOSTUNREACH, f"rank {rank} is not there")
        children.expel(child.uuid, "disconnected by the owner")
        call.acknowledge()

    def child_changed(self, child: Child) -> None:
        """Tell those who watch."""
        for call in [*self.kept()]:
            if call.request.topic == "overlay.health":
                call.respond(health(self.broker))
            else:
                call.respond(change(child))


def health(broker: BrokerEngine) -> dict[str, Any]:
    """Return how well the subtree of a broker is, with the seconds since it is so, and why a child is lost."""
    overlay, now = broker.overlay, broker.now
    children = []
    for rank in overlay.children.ranks:
        child = overlay.children.known.get(rank)
        status, changed = (Status.OFFLINE, broker.started) if child is None else (child.status, child.changed)
        told: dict[str, Any] = {"rank": rank, "status": status.word, "duration": now - changed}
        if child is not None and child.error:
            told["error"] = child.error
        if child is not None and child.torpid:
            told["torpid"] = True
        children.append(told)
    own = {"rank": broker.rank, "status": overlay.status.word, "duration": now - overlay.changed}
    return {**own, "children": children}


def change(child: Child) -> dict[str, Any]:
    """Return what a monitor is told of a child."""
    return {"rank": child.rank, "status": child.status.word, "torpid": child.torpid, "uuid": child.uuid}


def topology(broker: BrokerEngine, top: int) -> dict[str, Any]:
    """Return the nested shape of a subtree."""
    tree = broker.settings.tree

    def shape(rank: int) -> dict[str, Any]:
        below = [shape(child) for child in tree.children(rank)]
        return {"rank": rank, "size": 1 + sum(node["size"] for node in below), "children": below}

    return shape(top)
