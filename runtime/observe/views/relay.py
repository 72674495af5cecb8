"""The page of what stands between two peers: the capture proxy, and the bridge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from specwire.runtime.bridge.bridging import Bridged
from specwire.runtime.capture.counts import TapCounts
from specwire.runtime.capture.proxy import Proxied
from specwire.runtime.observe.view import Column, Fact, Health, Node, Table, View, branch, tabulate, word
from specwire.runtime.observe.views.common import captured
from specwire.runtime.transport.relay import Between


def view_proxy(
    relay: Between, proxied: Proxied, taps: Sequence[TapCounts], protocol: str, up_s: float
) -> View:
    """Return what the page of a capture proxy shows."""
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
            *captured(taps),
        ),
    )


def view_bridge(relay: Between, bridged: Bridged, protocol: str, up_s: float) -> View:
    """Return what the page of a bridge shows."""
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
