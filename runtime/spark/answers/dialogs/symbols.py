"""Typed tables as narrow rows: a symbol is a small number for message, sender and pairing.

A row of a conversation's state (`STATE`) sorts before the messages of its conversation. The fields
of a key are hashed. No other field of a message is read, so payloads do not go through the
exchange. A sender that is not a role of the protocol and a message that did not decode have symbols
too, because captured traffic may contain anything. A message without a conversation's name belongs
to the conversation ``""`` of its tap.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from functools import reduce
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, LongType, ShortType

from specwire.generated.dialog import Dialog
from specwire.runtime.spark.answers.messages import message_tables, noted_names
from specwire.runtime.spark.answers.step import Frames
from specwire.runtime.spark.decoding.tables import ERRORS
from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.protocols import load_machine

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
        self.messages = tuple(name for name in message_tables(protocol) if name != ERRORS)
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

    def symbol(self, message: str | None, sender: str | None, pairing: Pairing = Pairing.KEYED) -> int:
        """Return the symbol of a message."""
        role = self.roles.index(sender) if sender in self.roles else len(self.roles)
        return self.base(message) + role * len(Pairing) + pairing

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
    pairings = {(dialog.key, *map(_frozen, (dialog.keyless, dialog.unanswered))) for dialog in dialogs}
    return dialogs if len(pairings) <= 1 and all(map(_can_be_followed, dialogs)) else ()


def _can_be_followed(dialog: Dialog) -> bool:
    moved = {label for phase in dialog.phases.values() for label in (*phase.moves, *phase.starts)}
    return not dialog.key or not (dialog.errors or moved & set(dialog.replies))


def _frozen(values: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(values.items())


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
        frames.append(_states(state))
    if not frames:
        raise InputError(f"no typed table of protocol {alphabet.protocol!r} is given")
    rows = reduce(DataFrame.unionByName, frames)
    return rows if alphabet.key else rows.drop("key")


def _states(state: DataFrame) -> DataFrame:
    return state.select(
        "tap",
        "conversation",
        "peer",
        F.lit(BEFORE_ALL).cast("long").alias("seq"),
        F.lit(0).cast("long").alias("ts"),
        F.lit(0).cast("long").alias("mono"),
        F.lit(STATE).alias("symbol"),
        F.lit(None).cast("string").alias("sender"),
        "carried",
        F.lit(0).cast("long").alias("key"),
    )


def _messages(frame: DataFrame, alphabet: Alphabet, message: str | None) -> DataFrame:
    noted = noted_names(frame.columns)
    sender = F.col(noted["sender"])
    role = F.lit(len(alphabet.roles))
    for number, letter in enumerate(alphabet.roles):
        role = F.when(sender == letter, number).otherwise(role)
    symbol = F.lit(alphabet.base(message)) + role * len(Pairing) + _pairing(frame, alphabet)
    return frame.select(
        _name(F.col(noted["tap"])).alias("tap"),
        _name(F.col(noted["conversation"])).alias("conversation"),
        F.nullif(_name(F.col(noted["peer"])), F.lit("")).alias("peer"),
        F.coalesce(noted["seq"], F.lit(-1)).cast("long").alias("seq"),
        F.coalesce(F.unix_micros(noted["ts"]), F.lit(0)).cast("long").alias("ts"),
        F.coalesce(noted["mono"], F.lit(0)).cast("long").alias("mono"),
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
    dialog = alphabet.dialogs[0]
    pairing = F.lit(int(Pairing.KEYED))
    if _has(frame, dialog.unanswered):
        bits = [F.col(name).bitwiseAND(value) == value for name, value in dialog.unanswered.items()]
        pairing = F.when(_all(bits), int(Pairing.UNANSWERED)).otherwise(pairing)
    if _has(frame, dialog.keyless):
        equal = [F.col(name) == value for name, value in dialog.keyless.items()]
        pairing = F.when(_all(equal), int(Pairing.KEYLESS)).otherwise(pairing)
    return pairing


def _has(frame: DataFrame, fields: Mapping[str, int]) -> bool:
    return bool(fields) and all(name in frame.columns for name in fields)


def _all(conditions: list[Column]) -> Column:
    return reduce(Column.__and__, conditions)


def _key(frame: DataFrame, alphabet: Alphabet) -> Column:
    """Return a hash of the key's fields. Integers of any width hash alike."""
    fields = [_widened(frame, name) for name in alphabet.key if name in frame.columns]
    if not fields:
        return F.lit(0).cast("long")
    return F.xxhash64(*fields)


def _widened(frame: DataFrame, name: str) -> Column:
    kind = frame.schema[name].dataType
    return F.col(name).cast("long") if isinstance(kind, ShortType | IntegerType | LongType) else F.col(name)
