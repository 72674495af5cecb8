"""Typed tables as narrow rows: a symbol is a small number for message, sender and pairing.

A row of a conversation's state (`STATE`) sorts before the messages of its conversation. The fields
of a key are hashed. No other field of a message is read, so payloads do not go through the
exchange. A sender that is not a role of the protocol and a message that did not decode have symbols
too, because captured traffic may contain anything. A message without a conversation's name belongs
to the conversation ``""`` of its tap.
"""

from __future__ import annotations

from enum import IntEnum
from functools import reduce
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegralType

from specwire.generated.dialog import Dialog
from specwire.runtime.spark.answers.answer import Frames
from specwire.runtime.spark.answers.messages import stored_names, union
from specwire.runtime.spark.decoding.tables import ERRORS
from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.protocols import load_machine, load_schemas

STATE = -1
"""The symbol of a row that holds the state of an open conversation."""
BEFORE_ALL = -(1 << 63)
"""The `seq` of such a row, so that it sorts before the messages."""
LONGEST_NAME = 512
"""Characters of a name; the rest is cut. A routing id of 255 octets, shown in hex, is shorter."""


class Pairing(IntEnum):
    """Part of a message in the pairing of requests and replies."""

    KEYED = 0
    KEYLESS = 1
    UNANSWERED = 2


class Label(NamedTuple):
    """Meaning of a symbol. `sender` is None if it is not a role, `message` if it did not decode."""

    sender: str | None
    message: str | None
    pairing: Pairing

    def __str__(self) -> str:
        return f"{self.sender}:{self.message}"


class Alphabet:
    """The symbols of a protocol.

    Attributes:
        labels: the meaning of each symbol.
        undecodable: the first symbol of messages that did not decode; all later symbols are, too.
    """

    def __init__(self, protocol: str) -> None:
        """Number the messages. Raises InputError if `dialogs_of` returns none."""
        self.protocol = protocol
        self.dialogs = dialogs_of(protocol)
        if not self.dialogs:
            raise InputError(f"protocol {protocol!r} has no dialog that can be followed in captured traffic")
        self.messages = tuple(load_schemas(protocol).SCHEMAS)
        self.roles = tuple(dict.fromkeys(role for dialog in self.dialogs for role in dialog.roles))
        self.labels = tuple(
            Label(sender, message, pairing)
            for message in (*self.messages, None)
            for sender in (*self.roles, None)
            for pairing in Pairing
        )
        self.undecodable = self.base(None)

    def base(self, message: str | None) -> int:
        """Return the first symbol of a message; a role adds `len(Pairing)`, a pairing its value."""
        position = len(self.messages) if message is None else self.messages.index(message)
        return position * (len(self.roles) + 1) * len(Pairing)

    @property
    def key(self) -> tuple[str, ...]:
        """The fields by which replies are paired; empty if they are not paired by key."""
        return self.dialogs[0].key


def dialogs_of(protocol: str) -> tuple[Dialog, ...]:
    """Return the dialogs of a protocol; none if one of them cannot be followed here.

    The keys of replies are looked up separately from the phases. That gives the same result only if
    no reply changes the phase, no error answers a violation, and all dialogs have the same key.
    """
    dialogs = tuple(getattr(load_machine(protocol), "DIALOGS", {}).values())
    pairings = {
        (dialog.key, tuple(dialog.keyless.items()), tuple(dialog.unanswered.items())) for dialog in dialogs
    }
    for dialog in dialogs:
        moved = {label for phase in dialog.phases.values() for label in (*phase.moves, *phase.starts)}
        if dialog.key and (dialog.errors or moved & dialog.replies.keys()):
            return ()
    return dialogs if len(pairings) <= 1 else ()


def narrow_rows(typed: Frames, alphabet: Alphabet, state: DataFrame | None = None) -> DataFrame:
    """Return a row for each message of a protocol, and one for each open conversation in `state`.

    Columns: `tap`, `conversation`, `peer` (null without a name), `seq`, `ts` (microseconds), `mono`
    (nanoseconds of the tap's clock), `symbol`, `sender` (only if it is no role), `carried` (only of
    a state), and `key`, which is missing if the protocol has no keys.

    Raises InputError if neither a table of the protocol nor a state is given.
    """
    frames = [
        _messages(typed[message or ERRORS], alphabet, message)
        for message in (*alphabet.messages, None)
        if (message or ERRORS) in typed
    ]
    if state is not None:
        numbers = {"seq": BEFORE_ALL, "ts": 0, "mono": 0, "key": 0}
        frames.append(
            state.select(
                *("tap", "conversation", "peer", "carried"),
                F.lit(STATE).alias("symbol"),
                *(F.lit(value).cast("long").alias(name) for name, value in numbers.items()),
            )
        )
    if not frames:
        raise InputError(f"no typed table of protocol {alphabet.protocol!r} is given")
    rows = union(frames)
    return rows if alphabet.key else rows.drop("key")


def _messages(frame: DataFrame, alphabet: Alphabet, message: str | None) -> DataFrame:
    stored = stored_names(alphabet.protocol, message or ERRORS)
    sender = F.col(stored["sender"])
    role = F.lit(len(alphabet.roles))
    for number, letter in enumerate(alphabet.roles):
        role = F.when(sender == letter, number).otherwise(role)
    symbol = F.lit(alphabet.base(message)) + role * len(Pairing) + _pairing(frame, alphabet)
    return frame.select(
        _name(F.col(stored["tap"])).alias("tap"),
        _name(F.col(stored["conversation"])).alias("conversation"),
        F.nullif(_name(F.col(stored["peer"])), F.lit("")).alias("peer"),
        F.coalesce(stored["seq"], F.lit(-1)).cast("long").alias("seq"),
        F.coalesce(F.unix_micros(stored["ts"]), F.lit(0)).cast("long").alias("ts"),
        F.coalesce(stored["mono"], F.lit(0)).cast("long").alias("mono"),
        symbol.cast("int").alias("symbol"),
        F.when(~sender.isin(*alphabet.roles), _name(sender)).alias("sender"),
        F.lit(None).cast("string").alias("carried"),
        _key(frame, alphabet).alias("key"),
    )


def _name(text: Column) -> Column:
    """Return a text as a name: empty for null, and cut."""
    name = F.coalesce(text, F.lit(""))
    # Counting octets is fast, counting characters is slow.
    return F.when(F.octet_length(name) > LONGEST_NAME, F.substring(name, 1, LONGEST_NAME)).otherwise(name)


def _pairing(frame: DataFrame, alphabet: Alphabet) -> Column:
    dialog, pairing, columns = alphabet.dialogs[0], F.lit(int(Pairing.KEYED)), set(frame.columns)
    if dialog.unanswered and dialog.unanswered.keys() <= columns:
        bits = [F.col(name).bitwiseAND(value) == value for name, value in dialog.unanswered.items()]
        pairing = F.when(reduce(Column.__and__, bits), int(Pairing.UNANSWERED)).otherwise(pairing)
    if dialog.keyless and dialog.keyless.keys() <= columns:
        equal = [F.col(name) == value for name, value in dialog.keyless.items()]
        pairing = F.when(reduce(Column.__and__, equal), int(Pairing.KEYLESS)).otherwise(pairing)
    return pairing


def _key(frame: DataFrame, alphabet: Alphabet) -> Column:
    """Return a hash of the key's fields. Integers of any width hash alike."""
    fields = [
        F.col(name).cast("long") if isinstance(frame.schema[name].dataType, IntegralType) else F.col(name)
        for name in alphabet.key
        if name in frame.columns
    ]
    return F.xxhash64(*fields) if fields else F.lit(0).cast("long")
