"""The measures of what stands between two peers: the capture proxy, and the bridge."""

from __future__ import annotations

from collections.abc import Sequence

from specwire.runtime.bridge.bridging import Bridged
from specwire.runtime.capture.counts import TapCounts
from specwire.runtime.capture.proxy import Proxied
from specwire.runtime.observe.families import Family, counter, gauge
from specwire.runtime.observe.metrics.common import about, captured
from specwire.runtime.transport.relay import Between


def measure_proxy(
    relay: Between, proxied: Proxied, taps: Sequence[TapCounts], protocol: str, up_s: float
) -> list[Family]:
    """Return the measures of a capture proxy."""
    messages = Family(
        "specwire_proxy_messages",
        "counter",
        "Messages that were read, by the role of the sender.",
        ("sender",),
    )
    messages.add_each(proxied.messages)
    return [
        *about("capture-proxy", protocol, up_s),
        *_connections(relay),
        messages,
        counter("specwire_proxy_message_bytes", "Octets of their frames.", proxied.octets),
        counter(
            "specwire_proxy_unread_connections",
            "Connections that were passed on and not recorded.",
            proxied.unread.total(),
        ),
        *captured(taps),
    ]


def measure_bridge(relay: Between, bridged: Bridged, protocol: str, up_s: float) -> list[Family]:
    """Return the measures of a bridge."""
    messages = Family(
        "specwire_bridge_messages", "counter", "Messages that were translated, by where they went.", ("to",)
    )
    messages.add_each({"listener": bridged.to_listener, "opener": bridged.to_opener})
    return [
        *about("bridge", protocol, up_s),
        *_connections(relay),
        messages,
        counter(
            "specwire_bridge_unsaid_messages",
            "Messages that the other protocol cannot say.",
            bridged.unsaid.total(),
        ),
    ]


def _connections(relay: Between) -> list[Family]:
    return [
        gauge("specwire_relay_open_connections", "Connections that there are now.", relay.open_connections),
        counter("specwire_relay_connections", "Connections that were made.", relay.connections),
        counter(
            "specwire_relay_refused_connections",
            "Connections that were closed at once: too many, or nobody at the other side.",
            relay.refused,
        ),
    ]
