"""The measures of a FILEMQ server and of a subscriber.

Clients are not told apart: their routing ids are new with each connection, and each would be a series of its own for ever.
"""

from __future__ import annotations

from specwire.runtime.filemq.codec import Counters
from specwire.runtime.filemq.status import PeerStatus, ServerStatus, SubscriberStatus
from specwire.runtime.observe.families import Family, counter, gauge
from specwire.runtime.observe.metrics.common import about, captured

CONNECTION_STATES = ("opening", "open", "waiting", "ended")


def measure(status: PeerStatus) -> list[Family]:
    """Return the measures of a server or a subscriber."""
    is_server = isinstance(status, ServerStatus)
    role = "filemq-server" if is_server else "filemq-subscriber"
    return [
        *about(role, status.protocol, status.process.uptime_s),
        *(_of_server(status) if isinstance(status, ServerStatus) else _of_subscriber(status)),
        *_counted(status.counters, is_server=is_server),
        *captured(status.captures),
    ]


def _of_server(status: ServerStatus) -> list[Family]:
    files = Family("specwire_filemq_published_files", "gauge", "Files that are published.", ("path",))
    octets = Family("specwire_filemq_published_bytes", "gauge", "Their content.", ("path",))
    for publication in status.publications:
        files.add(publication.files, publication.path)
        octets.add(publication.octets, publication.path)
    clients = status.clients
    return [
        files,
        octets,
        gauge("specwire_filemq_clients", "Open peerings.", len(clients)),
        gauge(
            "specwire_filemq_subscriptions",
            "Subscriptions of all clients.",
            sum(len(c.subscriptions) for c in clients),
        ),
        gauge(
            "specwire_filemq_credit_bytes",
            "Credit of all clients: what may be sent.",
            sum(c.credit for c in clients),
        ),
        gauge(
            "specwire_filemq_queued_changes",
            "Changes that clients are still to be told of.",
            sum(c.queued for c in clients),
        ),
        gauge(
            "specwire_filemq_files_under_way",
            "Files of which a part has been sent.",
            sum(c.under_way is not None for c in clients),
        ),
    ]


def _of_subscriber(status: SubscriberStatus) -> list[Family]:
    connection = Family(
        "specwire_filemq_connection", "gauge", "1 for the state that the connection is in.", ("state",)
    )
    for state in CONNECTION_STATES:
        connection.add(status.connection == state, state)
    return [
        connection,
        gauge("specwire_filemq_held_files", "Files of the subscribed paths in the inbox.", status.files),
        gauge(
            "specwire_filemq_files_under_way",
            "Files of which a part has come.",
            status.under_way is not None,
        ),
        gauge(
            "specwire_filemq_pending_bytes",
            "Content that has come and is not on the disk yet.",
            status.pending_octets,
        ),
    ]


def _counted(counters: Counters, *, is_server: bool) -> list[Family]:
    messages = Family("specwire_filemq_messages", "counter", "Messages by direction.", ("direction",))
    messages.add_each({"in": counters.messages_in, "out": counters.messages_out})
    octets = Family("specwire_filemq_message_bytes", "counter", "Octets of all frames.", ("direction",))
    octets.add_each({"in": counters.octets_in, "out": counters.octets_out})
    commands = Family(
        "specwire_filemq_commands",
        "counter",
        "Commands that were understood or sent.",
        ("direction", "command"),
    )
    for direction, by_name in (("in", counters.commands_in), ("out", counters.commands_out)):
        for name, number in by_name.items():
            commands.add(number, direction, name)
    verb, removed = ("sent", "withdrawn") if is_server else ("received", "deleted")
    return [
        messages,
        octets,
        commands,
        counter("specwire_filemq_chunks", f"Chunks of content that were {verb}.", counters.chunks),
        counter(
            "specwire_filemq_content_bytes", f"Content of files that was {verb}.", counters.content_octets
        ),
        counter("specwire_filemq_files", f"Files that were {verb}, whole.", counters.files),
        counter("specwire_filemq_deletions", f"Files that were {removed}.", counters.deletions),
        counter("specwire_filemq_peerings", "Peerings that were opened.", counters.peerings),
        counter("specwire_filemq_resyncs", "Subscriptions with a list of what is there.", counters.resyncs),
        counter(
            "specwire_filemq_resumed_files", "Files that went on where they had stopped.", counters.resumed
        ),
        counter(
            "specwire_filemq_saved_bytes",
            "Content that did not travel again thanks to that.",
            counters.octets_saved,
        ),
        counter(
            "specwire_filemq_refusals", "Files, paths and commands that were not accepted.", counters.refusals
        ),
        counter("specwire_filemq_malformed_messages", "Messages that are no command.", counters.malformed),
        counter(
            "specwire_filemq_cut_connections",
            "Connections that were cut off for an unfinished message.",
            counters.cut_off,
        ),
    ]
