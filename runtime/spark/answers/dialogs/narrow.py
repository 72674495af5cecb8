"""Typed tables as the few narrow columns that dialogs are followed by.

Whoever sent a message and how it is paired is in its symbol; the fields of its key are hashed; nothing else of the
message is read. What costs is sending columns to Python, texts above all: so there is one text for all names, and a
hash tells conversations apart (`specwire.runtime.spark.answers.dialogs.texts`). A message without a conversation's name is
in the conversation ``""`` of its tap.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, LongType, ShortType

from specwire.runtime.spark.answers.dialogs.alphabet import Alphabet, Pairing
from specwire.runtime.spark.answers.dialogs.batches import STATE
from specwire.runtime.spark.answers.dialogs.texts import join, name
from specwire.runtime.spark.answers.step import Frames
from specwire.runtime.spark.decoding.shape import NOTED
from specwire.runtime.spark.decoding.tables import ERRORS
from specwire.runtime.spark.errors import InputError

BEFORE_ALL = -(1 << 63)
"""The `seq` of a conversation's state, which sorts before its messages."""


def narrow_rows(typed: Frames, alphabet: Alphabet, state: DataFrame | None = None) -> DataFrame:
    """Return all messages of a protocol, and its open conversations, as the columns of `batches.NOTHING`.

    Where no field of the protocol is a key, there is no column of keys.

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
    rows = reduce(DataFrame.unionByName, frames)
    return rows if alphabet.key else rows.drop("key")


def _narrow_state(state: DataFrame) -> DataFrame:
    """Return open conversations with the columns of `narrow_rows`."""
    nothing = F.lit(0).cast("long")
    names = F.col("tap"), F.col("conversation"), F.coalesce("peer", F.lit(""))
    said, text = join(F.lit(STATE), names, F.col("carried"))
    return state.select(
        F.xxhash64("tap", "conversation").alias("place"),
        F.lit(BEFORE_ALL).cast("long").alias("seq"),
        nothing.alias("ts"),
        nothing.alias("mono"),
        said.alias("said"),
        nothing.alias("key"),
        text.alias("text"),
    )


def _narrow(frame: DataFrame, alphabet: Alphabet, message: str | None) -> DataFrame:
    noted = _noted_names(frame.columns)
    sender = F.col(noted["sender"])
    known = sender.isin(*alphabet.roles)
    role = F.lit(len(alphabet.roles))
    for number, letter in enumerate(alphabet.roles):
        role = F.when(sender == letter, number).otherwise(role)
    symbol = F.lit(alphabet.base(message)) + role * len(Pairing) + _pairing(frame, alphabet)
    names = tuple(name(F.col(noted[each])) for each in ("tap", "conversation", "peer"))
    said, text = join(symbol, names, F.when(~known, name(sender)))
    return frame.select(
        F.xxhash64(*names[:2]).alias("place"),
        F.coalesce(noted["seq"], F.lit(-1)).cast("long").alias("seq"),
        F.coalesce(F.unix_micros(noted["ts"]), F.lit(0)).cast("long").alias("ts"),
        F.coalesce(noted["mono"], F.lit(0)).cast("long").alias("mono"),
        said.alias("said"),
        _key(frame, alphabet).alias("key"),
        text.alias("text"),
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
