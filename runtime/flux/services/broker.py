"""``broker``: is it there, and what has it done.

``broker.ping`` gives back every key of its payload, with the way of the request (the first 8 characters of each
hop's uuid), the credentials as they came, and the rank.
"""

from __future__ import annotations

from typing import Any

import msgspec

from specwire.runtime.flux.answering import pack
from specwire.runtime.flux.credentials import USER
from specwire.runtime.flux.services.service import Call, Service, serves

SHOWN_CHARACTERS = 8
"""Of each uuid in a ping's route."""
_ECHOED = dict[str, msgspec.Raw]
"""What is only given back is not to be understood."""


class BrokerService(Service):
    """The broker itself."""

    __slots__ = ()

    @serves("ping", USER)
    def ping(self, call: Call) -> None:
        """Tell that the broker is there, and how it was reached."""
        request, broker = call.request, self.broker
        echoed: dict[str, Any] = call.read(_ECHOED)
        route = broker.uuid[:SHOWN_CHARACTERS]
        for hop in request.routes or ():
            route = f"{hop[:SHOWN_CHARACTERS]}!{route}"
        echoed["route"] = route
        echoed["userid"], echoed["rolemask"] = request.userid, request.rolemask
        echoed["rank"] = broker.rank
        call.respond_octets(pack(echoed))

    @serves("info", USER)
    def info(self, call: Call) -> None:
        """Tell who this broker is, and who its neighbours are."""
        broker, overlay = self.broker, self.broker.overlay
        call.respond(
            {
                "rank": broker.rank,
                "size": broker.settings.tree.size,
                "uuid": broker.uuid,
                "hostname": broker.hostname,
                "status": overlay.status.word,
                "parent": overlay.parent,
                "children": {child.uuid: child.rank for child in overlay.children.present.values()},
                "clients": len(broker.clients),
                "services": broker.registry.names(),
                "uptime": broker.now - broker.started,
            }
        )

    @serves("stats-get", USER)
    def stats(self, call: Call) -> None:
        """Tell what was counted since the start, and what is pending now."""
        broker, overlay = self.broker, self.broker.overlay
        pending = len(overlay.tracker)
        pending += sum(len(child.tracker) for child in overlay.children.present.values())
        pending += sum(len(client.tracker) for client in broker.clients)
        pending += sum(broker.registry.pending().values())
        counted = msgspec.structs.asdict(broker.counters)
        call.respond({**counted, "pending": pending, "sequence": broker.publisher.sequence})
