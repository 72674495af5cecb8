"""Facts about a protocol that answers need and that its generated package does not have.

They are data in ``answers/protocols/<name>.py``: which column is the topic, which messages are
signs of life, how a request differs from its answer. A condition is a SQL expression over the
columns of a typed table. A protocol without such a module still has traffic, errors, silences,
nodes and edges.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from types import MappingProxyType
from typing import NamedTuple

from pyspark.sql import Column
from pyspark.sql import functions as F

from specwire.runtime.spark.protocols import load_machine

ALWAYS = "true"
"""The condition that every message of a type meets."""

Chosen = Mapping[str, str]
"""For message classes a SQL text each."""

NONE: Chosen = MappingProxyType({})


class Calls(NamedTuple):
    """Requests and responses that are paired by a tag.

    Attributes:
        streaming: the bits in `flags` of a call with a stream of responses; 0 where there are none.
        last: the error number that ends a stream well.
    """

    streaming: int
    last: int


class Files(NamedTuple):
    """Files that are sent in chunks against credit.

    Attributes:
        ends: SQL: whether a chunk is the last of its file.
    """

    ends: str


class Numbers(NamedTuple):
    """Messages that are numbered in the order in which they are sent.

    Attributes:
        columns: for message classes the SQL of their number; null where this one has none.
        modulus: how many numbers there are before they begin again; None: they do not.
        chosen_by: messages by which the receiver asks for some of them only.
        restarts: messages after which numbers restart: their sender's if they are numbered
            themselves, else the other side's.
    """

    columns: Chosen
    modulus: int | None = None
    chosen_by: Chosen = NONE
    restarts: Chosen = NONE


class Particulars(NamedTuple):
    """Facts about one protocol.

    Attributes:
        topics: for message classes the SQL of what a message is about: a topic, a service, a group.
        peer_name: SQL over the column `peer`: the peer's name for people.
        beats: messages that are signs of life and nothing else.
        beat: the timer of the machine that says how often they are sent.
        silence: the timer that says after which time a silent peer is missed.
        greetings: messages that begin a session.
        farewells: messages after which a side owes no sign of life.
        calls, files, numbers: what there is of these.
        jobs: whether it has the jobs of NORFAB.
        connection: SQL over the column `conversation`: the part of the name that is equal at the
            taps of both sides.
    """

    topics: Chosen = NONE
    peer_name: str = "peer"
    beats: Chosen = NONE
    beat: str = "heartbeat"
    silence: str = "expiry"
    greetings: Chosen = NONE
    farewells: Chosen = NONE
    calls: Calls | None = None
    files: Files | None = None
    numbers: Numbers | None = None
    jobs: bool = False
    connection: str = "conversation"


PACKAGE = "specwire.runtime.spark.answers.protocols"

SILENCE_S = 30.0
"""The silence that is let pass where a protocol has no timer for it, in seconds."""


def particulars_of(protocol: str) -> Particulars:
    """Return what is particular to a protocol; the default where nothing is stated."""
    name = f"{PACKAGE}.{protocol}"
    if find_spec(name) is None:
        return Particulars()
    stated: Particulars = import_module(name).PARTICULARS
    return stated


def name_tap(tap: str = "tap") -> Column:
    """Return the name in a column with ids of taps, without the process id and time that follow."""
    return F.regexp_replace(F.col(tap), r"-\d+-[^-]+$", "")


def name_conversation(
    protocol: str, tap: str = "tap", peer: str = "peer", conversation: str = "conversation"
) -> Column:
    """Return names of conversations for people, such as ``server with 00aa``.

    `tap`, `peer` and `conversation` are columns. The conversation replaces a peer that the tap does
    not know.
    """
    # The SQL is over a column `peer`, and this column may have another name.
    named = F.expr(f"transform(array(`{peer}`), peer -> {particulars_of(protocol).peer_name})[0]")
    other = F.coalesce(*(F.nullif(name, F.lit("")) for name in (named, F.col(conversation))), F.lit("?"))
    return F.concat(name_tap(tap), F.lit(" with "), other)


def takes_time(protocol: str) -> bool:
    """Return whether a protocol has requests, jobs or files, which take time."""
    stated = particulars_of(protocol)
    return bool(stated.calls or stated.jobs or stated.files)


def silence_s(protocol: str) -> float:
    """Return the longest tolerated silence, in seconds."""
    return load_machine(protocol).TIMERS.get(particulars_of(protocol).silence, SILENCE_S)


def beat_s(protocol: str) -> float | None:
    """Return the time between two heartbeats in seconds.

    None where the protocol has no timer for it.
    """
    return load_machine(protocol).TIMERS.get(particulars_of(protocol).beat)
