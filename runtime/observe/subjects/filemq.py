"""A FILEMQ server or subscriber, as it is shown."""

from __future__ import annotations

from specwire.runtime.filemq.status import Peer
from specwire.runtime.observe.metrics.filemq import measure
from specwire.runtime.observe.rates import Counted
from specwire.runtime.observe.subject import Subject
from specwire.runtime.observe.views.filemq import view_peer


def peer_subject(peer: Peer) -> Subject:
    """Return a peer as it is shown while it runs."""

    def totals() -> tuple[float, ...]:
        counters = peer.counters
        return counters.content_octets, counters.files, counters.messages_in, counters.messages_out

    return Subject(
        counted=(
            Counted("content", "octets"),
            Counted("files"),
            Counted("messages in"),
            Counted("messages out"),
        ),
        totals=totals,
        measure=lambda: measure(peer.status()),
        view=lambda: view_peer(peer.status()),
        health=lambda: view_peer(peer.status()).health,
    )
