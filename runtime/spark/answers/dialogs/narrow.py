"""Typed tables as the few narrow columns that dialogs are followed by.

Whoever sent a message and how it is paired is in its symbol; the fields of its key are hashed; nothing else of the
message is read. What costs is sending columns to Python, texts above all: so there is one text for all names, and a
hash tells conversations apart. A message without a conversation's name is in the conversation ``""`` of its tap.
In a name U+FFFD stands for NUL, which separates the names in that text, and a name that is longer than any that a peer
can have is cut, so that a row is small whatever a capture holds.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, LongType, ShortType

from specwire.runtime.spark.answers.dialogs.alphabet import Alphabet, Pairing
from specwire.runtime.spark.answers.dialogs.batches import SEPARATOR, STATE
from specwire.runtime.spark.answers.step import Frames
from specwire.runtime.spark.decoding.noted import NOTED
from specwire.runtime.spark.decoding.tables import ERRORS
from specwire.runtime.spark.errors import InputError

LONGEST = 512
"""Characters of a name: twice the octets that an identity may have, for they may be shown in hex."""

BEFORE_ALL = -(1 << 63)
"""The `seq` of a conversation's state, which sorts before its messages."""


def narrow_rows(typed: Frames, alphabet: Alphabet, state: DataFrame | None = None) -> DataFrame:
    """Return all messages of a protocol, and its open conversations, as the columns of `batches.NOTHING`.

    Raises InputError where neither a table of the protocol nor a state is given.
    """
    frames = [
        _narrow(typed[message or ERRORS], alphabet, message)
        for message in (*alphabet.messages, None)
        if (message or ERRORS) in typed
    ]
    if state is not None:
        frames.append(_narrow_state(state))
    if not frames:
        raise InputError(f"no typed table of protocol {alphabet.protocol!r} is given")
    return reduce(DataFrame.unionByName, frames)


def _narrow_state(state: DataFrame) -> DataFrame:
    """Return open conversations with the columns of `narrow_rows`."""
    nothing = F.lit(0).cast("long")
    return state.select(
        F.xxhash64("tap", "conversation").alias("place"),
        F.lit(BEFORE_ALL).cast("long").alias("seq"),
        nothing.alias("ts"),
        nothing.alias("mono"),
        F.lit(STATE).cast("short").alias("symbol"),
        nothing.alias("key"),
        _text(F.col("tap"), F.col("conversation"), F.col("peer"), F.col("carried")).alias("text"),
    )


def order(rows: DataFrame) -> DataFrame:
    """Return each conversation in one partition, its messages by `seq`: the exchange and the sort."""
    return rows.repartition("place").sortWithinPartitions("place", "seq")


def _text(tap: Column, conversation: Column, peer: Column, more: Column) -> Column:
    return F.concat_ws(SEPARATOR, tap, conversation, F.coalesce(peer, F.lit("")), more)


def _name(text: Column) -> Column:
    """Return a text that can stand before `SEPARATOR`, empty for null; to look is quicker than to translate."""
    there = F.coalesce(text, F.lit(""))
    whole = F.when(there.contains(SEPARATOR), F.translate(there, SEPARATOR, "\ufffd")).otherwise(there)
    return F.when(F.octet_length(there) > LONGEST, F.substring(whole, 1, LONGEST)).otherwise(whole)


def _narrow(frame: DataFrame, alphabet: Alphabet, message: str | None) -> DataFrame:
    noted = _noted_names(frame.columns)
    sender = F.col(noted["sender"])
    known = sender.isin(*alphabet.roles)
    role = F.lit(len(alphabet.roles))
    for number, letter in enumerate(alphabet.roles):
        role = F.when(sender == letter, number).otherwise(role)
    symbol = F.lit(alphabet.base(message)) + role * len(Pairing) + _pairing(frame, alphabet)
    tap, conversation, peer = (_name(F.col(noted[name])) for name in ("tap", "conversation", "peer"))
    return frame.select(
        F.xxhash64(tap, conversation).alias("place"),
        F.coalesce(noted["seq"], F.lit(-1)).cast("long").alias("seq"),
        F.coalesce(F.unix_micros(noted["ts"]), F.lit(0)).cast("long").alias("ts"),
        F.coalesce(noted["mono"], F.lit(0)).cast("long").alias("mono"),
        symbol.cast("short").alias("symbol"),
        _key(frame, alphabet).alias("key"),
        # A text that is null is left out.
        _text(tap, conversation, peer, F.when(~known, _name(sender))).alias("text"),
    )


def _noted_names(columns: Collection[str]) -> dict[str, str]:
    """Return what the noted columns are called in a table: a field of the message may have the name of one."""
    return {name: f"_{name}" if f"_{name}" in columns else name for name in NOTED.fieldNames()}


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
    """A hash of the key's fields; whole numbers of any width count as the same, as they do in Python."""
    fields = [_widened(frame, name) for name in alphabet.key if name in frame.columns]
    if not fields:
        return F.lit(0).cast("long")
    return F.xxhash64(*fields)


def _widened(frame: DataFrame, name: str) -> Column:
    kind = frame.schema[name].dataType
    return F.col(name).cast("long") if isinstance(kind, ShortType | IntegerType | LongType) else F.col(name)
