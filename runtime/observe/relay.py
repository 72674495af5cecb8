"""Page and metrics of the capture proxy and the bridge, which are between two peers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from specwire.runtime.bridge.bridging import Bridged
from specwire.runtime.capture.counts import TapCounts, count_taps
from specwire.runtime.capture.proxy import Proxied
from specwire.runtime.observe.common import about, measure_taps, tabulate_taps
from specwire.runtime.observe.families import Family, counter, gauge
from specwire.runtime.observe.view import (
    Column,
    Counted,
    Fact,
    Health,
    Node,
    Subject,
    Table,
    View,
    branch,
    tabulate,
    word,
)
from specwire.runtime.transport.relay import Between


def view_proxy(
    relay: Between, proxied: Proxied, taps: Sequence[TapCounts], protocol: str, up_s: float
) -> View:
    """Return the page of a capture proxy."""
    dropped = sum(tap.dropped for tap in taps)
    return View(
        title="Capture proxy",
        name=word(relay.endpoint),
        health=Health("the capture has holes", "fair") if dropped else Health("recording", "good"),
        facts=_facts(protocol, up_s),
        gauges=(
            *_connections(relay),
            Fact("messages", proxied.messages.total(), "count"),
            Fact("their octets", proxied.octets, "octets"),
            Fact("connections not read", proxied.unread.total(), "count"),
            Fact("messages dropped", dropped, "count"),
        ),
        tree=_way(relay),
        tables=(
            _counted("Messages by sender", "role", proxied.messages, "no message was read"),
            _counted("Not recorded", "reason", proxied.unread, "every connection could be read"),
            *tabulate_taps(taps),
        ),
    )


def view_bridge(relay: Between, bridged: Bridged, protocol: str, up_s: float) -> View:
    """Return the page of a bridge."""
    return View(
        title="Bridge",
        name=word(relay.endpoint),
        health=Health("translating", "good"),
        facts=_facts(protocol, up_s),
        gauges=(
            *_connections(relay),
            Fact("messages to the listener", bridged.to_listener, "count"),
            Fact("messages back", bridged.to_opener, "count"),
            Fact("could not be said", bridged.unsaid.total(), "count"),
        ),
        tree=_way(relay),
        tables=(_counted("Not said", "reason", bridged.unsaid, "everything could be said"),),
    )


def _facts(protocol: str, up_s: float) -> tuple[Fact, ...]:
    return (Fact("up", up_s, "seconds"), Fact("protocol", protocol))


def _connections(relay: Between) -> tuple[Fact, ...]:
    return (
        Fact("connections now", relay.open_connections, "count"),
        Fact("connections made", relay.connections, "count"),
        Fact("refused", relay.refused, "count"),
    )


def _way(relay: Between) -> Node:
    return branch(relay.endpoint, (relay.target,), lambda target: Node(word(target), "the other side"))


def _counted(title: str, head: str, counts: Mapping[str, int], empty: str) -> Table:
    most = sorted(counts.items(), key=lambda item: -item[1])
    return tabulate(title, (Column(head), Column("number", "count")), most, lambda item: item, empty=empty)


def measure_proxy(
    relay: Between, proxied: Proxied, taps: Sequence[TapCounts], protocol: str, up_s: float
) -> list[Family]:
    """Return the metrics of a capture proxy."""
    messages = Family(
        "specwire_proxy_messages",
        "counter",
        "Messages that were read, by the role of the sender.",
        ("sender",),
    )
    messages.add_each(proxied.messages)
    return [
        *about("capture-proxy", protocol, up_s),
        *_measure_connections(relay),
        messages,
        counter("specwire_proxy_message_bytes", "Octets of their frames.", proxied.octets),
        counter(
            "specwire_proxy_unread_connections",
            "Connections that were passed on and not recorded.",
            proxied.unread.total(),
        ),
        *measure_taps(taps),
    ]


def measure_bridge(relay: Between, bridged: Bridged, protocol: str, up_s: float) -> list[Family]:
    """Return the metrics of a bridge."""
    messages = Family(
        "specwire_bridge_messages", "counter", "Messages that were translated, by where they went.", ("to",)
    )
    messages.add_each({"listener": bridged.to_listener, "opener": bridged.to_opener})
    return [
        *about("bridge", protocol, up_s),
        *_measure_connections(relay),
        messages,
        counter(
            "specwire_bridge_unsaid_messages",
            "Messages that the other protocol cannot say.",
            bridged.unsaid.total(),
        ),
    ]


def _measure_connections(relay: Between) -> list[Family]:
    return [
        gauge("specwire_relay_open_connections", "Connections that there are now.", relay.open_connections),
        counter("specwire_relay_connections", "Connections that were made.", relay.connections),
        counter(
            "specwire_relay_refused_connections",
            "Connections that were closed at once: too many, or nobody at the other side.",
            relay.refused,
        ),
    ]


def proxy_subject(
    relay: Between, proxied: Proxied, taps: Sequence[object], protocols: Sequence[str]
) -> Subject:
    """Return a running capture proxy for page and metrics.

    Args:
        relay: connects the two sides.
        proxied: counts of what was read.
        taps: recorders of the messages.
        protocols: those of the peers.
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
    """Return a running bridge for page and metrics.

    Args:
        relay: connects the two sides.
        bridged: counts of what was translated.
        protocols: those of the two sides.
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
