"""A capture proxy or a bridge, as it is shown."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from specwire.runtime.bridge.bridging import Bridged
from specwire.runtime.capture.counts import TapCounts, count_taps
from specwire.runtime.capture.proxy import Proxied
from specwire.runtime.observe.metrics.relay import measure_bridge, measure_proxy
from specwire.runtime.observe.rates import Counted
from specwire.runtime.observe.subject import Subject
from specwire.runtime.observe.view import View
from specwire.runtime.observe.views.relay import view_bridge, view_proxy
from specwire.runtime.transport.relay import Between


def proxy_subject(
    relay: Between, proxied: Proxied, taps: Sequence[object], protocols: Sequence[str]
) -> Subject:
    """Return a capture proxy as it is shown while it runs.

    Args:
        relay: passes on.
        proxied: what was read of it.
        taps: recorders that took it.
        protocols: what the peers may speak.
    """
    spoken, up_s = ", ".join(protocols), _age()

    def counts() -> list[TapCounts]:
        return [one for tap in taps for one in count_taps(tap)]

    def view() -> View:
        return view_proxy(relay, proxied, counts(), spoken, up_s())

    return Subject(
        counted=(Counted("messages"), Counted("octets", "octets"), Counted("connections")),
        totals=lambda: (proxied.messages.total(), proxied.octets, relay.connections),
        measure=lambda: measure_proxy(relay, proxied, counts(), spoken, up_s()),
        view=view,
        health=lambda: view().health,
    )


def bridge_subject(relay: Between, bridged: Bridged, protocols: Sequence[str]) -> Subject:
    """Return a bridge as it is shown while it runs.

    Args:
        relay: passes on.
        bridged: what was translated.
        protocols: those on either side.
    """
    spoken, up_s = ", ".join(protocols), _age()

    def view() -> View:
        return view_bridge(relay, bridged, spoken, up_s())

    return Subject(
        counted=(
            Counted("messages to the listener"),
            Counted("messages back"),
            Counted("could not be said"),
        ),
        totals=lambda: (bridged.to_listener, bridged.to_opener, bridged.unsaid.total()),
        measure=lambda: measure_bridge(relay, bridged, spoken, up_s()),
        view=view,
        health=lambda: view().health,
    )


def _age() -> Callable[[], float]:
    began_s = time.monotonic()
    return lambda: round(time.monotonic() - began_s, 3)
