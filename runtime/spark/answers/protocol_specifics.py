"""Facts about protocols that answers need and that generated packages do not have.

They are data, in `SPECIFICS`: which column is the topic, which messages are signs of life, how a
request differs from its response. A condition is a SQL expression over the columns of a typed
table. A protocol without an entry still has traffic, errors, silences, nodes and edges.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from pyspark.sql import Column
from pyspark.sql import functions as F

from specwire.generated import cmb1, flux
from specwire.runtime.spark.protocols import load_machine

SqlByMessage = Mapping[str, str]
"""A SQL expression for each of some message classes."""

NONE: SqlByMessage = MappingProxyType({})


class Calls(NamedTuple):
    """Requests and responses that are paired by a tag.

    Attributes:
        streaming: the bits in `flags` of a call with a stream of responses; 0 for none.
        end_of_stream: the error number that ends a stream successfully.
    """

    streaming: int = 0
    end_of_stream: int = flux.ENODATA


class Numbering(NamedTuple):
    """Messages that are numbered in the order in which they are sent.

    Attributes:
        columns: the number of each class; null for a message without one.
        modulus: count of numbers before they begin again; None if they do not.
        filtered_by: messages by which the receiver asks for some of them only.
        restarts: messages after which numbers restart: their sender's if they are numbered
            themselves, else the other side's.
    """

    columns: SqlByMessage
    modulus: int | None = None
    filtered_by: SqlByMessage = NONE
    restarts: SqlByMessage = NONE


class ProtocolSpecifics(NamedTuple):
    """Facts about one protocol.

    Attributes:
        topics: topic, service or group of each class.
        peer_name: SQL over the column `peer`: the peer's name for people.
        heartbeats: messages that are signs of life and nothing else.
        heartbeat_timer: the timer of the machine that says how often they are sent.
        silence_timer: the timer that says how long a peer may be silent.
        greetings: messages that begin a session.
        farewells: messages after which a side owes no sign of life.
        calls: requests and responses, if there are any.
        file_ends: whether a chunk is the last of its file; empty if the protocol sends no files.
        numbering: numbered messages, if there are any.
        jobs: whether it has the jobs of NORFAB.
        connection: SQL over the column `conversation`: the part of the name that is equal at the
            taps of both sides.
    """

    topics: SqlByMessage = NONE
    peer_name: str = "peer"
    heartbeats: SqlByMessage = NONE
    heartbeat_timer: str = "heartbeat"
    silence_timer: str = "expiry"
    greetings: SqlByMessage = NONE
    farewells: SqlByMessage = NONE
    calls: Calls | None = None
    file_ends: str = ""
    numbering: Numbering | None = None
    jobs: bool = False
    connection: str = "conversation"


SILENCE_S = 30.0
"""The longest tolerated silence if a protocol has no timer for it, in seconds."""


def specifics_of(protocol: str) -> ProtocolSpecifics:
    """Return the facts about a protocol; the defaults if it has no entry."""
    return SPECIFICS.get(protocol, ProtocolSpecifics())


def tap_name(tap: str = "tap") -> str:
    """Return the SQL of the name in an id of a tap, without the process id and time that follow."""
    return rf"regexp_replace({tap}, '-\\d+-[^-]+$', '')"


def name_conversation(
    protocol: str, tap: str = "tap", peer: str = "peer", conversation: str = "conversation"
) -> Column:
    """Return names of conversations for people, such as ``server with 00aa``.

    `tap`, `peer` and `conversation` are columns. The conversation replaces a peer that the tap does
    not know.
    """
    # The SQL is over a column `peer`, and this column may have another name.
    named = F.expr(f"transform(array(`{peer}`), peer -> {specifics_of(protocol).peer_name})[0]")
    other = F.coalesce(*(F.nullif(name, F.lit("")) for name in (named, F.col(conversation))), F.lit("?"))
    return F.concat(F.expr(tap_name(f"`{tap}`")), F.lit(" with "), other)


def takes_time(protocol: str) -> bool:
    """Return whether a protocol has requests, jobs or files, which take time."""
    specifics = specifics_of(protocol)
    return bool(specifics.calls or specifics.jobs or specifics.file_ends)


def silence_s(protocol: str) -> float:
    """Return the longest tolerated silence, in seconds."""
    return load_machine(protocol).TIMERS.get(specifics_of(protocol).silence_timer, SILENCE_S)


def heartbeat_s(protocol: str) -> float | None:
    """Return the time between two heartbeats in seconds; None if the protocol has no timer."""
    return load_machine(protocol).TIMERS.get(specifics_of(protocol).heartbeat_timer)


def _always(*messages: str) -> dict[str, str]:
    """Return the condition that every message of these classes meets."""
    return dict.fromkeys(messages, "true")


_FLUX = ProtocolSpecifics(
    topics=dict.fromkeys(("Request", "Response", "Event"), "topic"),
    # Rank 0 publishes `heartbeat.pulse`; a child that is idle sends a control message of type 0.
    heartbeats={"Control": "type = 0", "Event": "topic = 'heartbeat.pulse'"},
    silence_timer="torpid",
    greetings={"Request": "topic = 'overlay.hello'"},
    farewells={"Request": "topic = 'overlay.goodbye'", "Control": "type = 2"},
    calls=Calls(streaming=int(flux.Flags.STREAMING)),
    # Rank 0 alone numbers events, from 1. An event that a client sends has number 0.
    numbering=Numbering(
        columns={"Event": "nullif(sequence, 0)"},
        filtered_by={"Request": "topic = 'event.subscribe'"},
    ),
    # A parent's tap and a child's both name their connection by the child's uuid, after a number
    # that each tap chooses.
    connection="regexp_replace(conversation, '^[0-9a-f]{8}-(?=[0-9a-f-]{32,36}$)', '')",
)

_CMB1 = ProtocolSpecifics(
    topics=_FLUX.topics,
    heartbeats=_always("Keepalive"),
    calls=Calls(streaming=int(cmb1.Flags.STREAMING)),
    numbering=_FLUX.numbering,
    connection=_FLUX.connection,
)

_FILEMQ = ProtocolSpecifics(
    heartbeats=_always("Hugz", "HugzOk"),
    greetings=_always("Ohai"),
    farewells=_always("Kthxbai"),
    file_ends="octet_length(chunk) = 0",
    numbering=Numbering({"Cheezburger": "try_cast(sequence as bigint)"}, restarts=_always("Ohai")),
    # The routing id that our clients choose. The server's tap puts its session before it.
    connection="""coalesce(
        nullif(regexp_extract(conversation, '(?:^|-)([0-9a-f]{16})$', 1), ''), conversation
    )""",
)

_NORFAB = ProtocolSpecifics(
    topics=dict.fromkeys(
        (
            *("Ready", "PostClient", "ResponseClient", "GetClient"),
            *("DeleteClient", "EventClient", "MmiClient", "MmiBroker"),
        ),
        "service",
    ),
    # A broker's tap knows a peer by its routing id in hex, which is its name; the taps of clients
    # and workers know the broker's endpoint.
    peer_name="coalesce(try_validate_utf8(try_to_binary(peer, 'hex')), peer)",
    heartbeats=_always("Keepalive"),
    heartbeat_timer="keepalive",
    greetings=_always("Ready"),
    farewells=_always("Disconnect"),
    jobs=True,
    # A client's routing id is its name and the first eight digits of the conversation's name at its
    # tap. A worker's routing id is its name, which both taps have. A broker's tap puts the role of
    # the door before it, and one door may serve both roles.
    connection=r"""coalesce(
        decode(unhex(nullif(regexp_extract(
            conversation, '^[0-9a-f]{8}-(?:client|worker)-(?:[0-9a-f]{2})*2d((?:3[0-9]|6[1-6]){8})$', 1
        ), '')), 'UTF-8'),
        nullif(regexp_extract(conversation, '^([0-9a-f]{8})[0-9a-f]{8}$', 1), ''),
        nullif(regexp_extract(conversation, '^[0-9a-f]{8}-(?:client|worker)-([0-9a-f]+)$', 1), ''),
        conversation
    )""",
)

_ZRE_MESSAGES = ("Hello", "Whisper", "Shout", "Join", "Leave", "Ping", "PingOk")

SPECIFICS: dict[str, ProtocolSpecifics] = {
    "flux": _FLUX,
    # The later edition of CMB1 has a keepalive in place of the control message. The earlier one has
    # no streams.
    "cmb1": _CMB1,
    "cmb1_json": _CMB1._replace(calls=Calls()),
    # The end of a file is an empty chunk, as our servers mark it. In the C implementation the last
    # chunk of a file says so, and may have content.
    "filemq": _FILEMQ,
    "libfilemq": _FILEMQ._replace(file_ends="eof <> 0 or octet_length(chunk) = 0"),
    # The deployed dialect has the same jobs, and streams of file chunks beside them.
    "norfab": _NORFAB,
    "norfab_ascii": _NORFAB._replace(
        topics={**_NORFAB.topics, "StreamClient": "service", "PutClient": "service"}
    ),
    # Peers number all messages that they send from 1, in two octets.
    "zre": ProtocolSpecifics(
        topics=dict.fromkeys(("Shout", "Join", "Leave"), "group"),
        heartbeats=_always("Ping", "PingOk"),
        greetings=_always("Hello"),
        numbering=Numbering(
            dict.fromkeys(_ZRE_MESSAGES, "sequence"), modulus=1 << 16, restarts=_always("Hello")
        ),
    ),
}
"""The facts about each protocol, by the name of its package."""
