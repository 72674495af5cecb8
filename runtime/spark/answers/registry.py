"""Registry of answers: the tables that each reads and writes, and its protocols.

A *continued* answer continues from its state (`specwire.runtime.spark.answers.step`). A *roll-up*
is computed again from whole tables of the dates that a run touched. The pipeline and the stream
iterate over `continued` and `roll_ups` and refer to no answer by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from specwire.runtime.spark.answers.step import Advance, Frames

MODULES: tuple[str, ...] = (
    "specwire.runtime.spark.answers.dialogs.conversations",
    "specwire.runtime.spark.answers.taps",
    "specwire.runtime.spark.answers.requests",
    "specwire.runtime.spark.answers.jobs",
    "specwire.runtime.spark.answers.transfers",
    "specwire.runtime.spark.answers.health",
    "specwire.runtime.spark.answers.gaps",
    "specwire.runtime.spark.answers.rates",
    "specwire.runtime.spark.answers.topics",
    "specwire.runtime.spark.answers.faults",
    "specwire.runtime.spark.answers.graph",
)
"""Modules of this package that have answers, as tuples `CONTINUED` and `ROLL_UPS`.

Roll-ups in this order.
"""


class Continued(NamedTuple):
    """Answer that continues from portion to portion.

    Attributes:
        name: what it is called; its state lies under this name.
        applies: whether there is such an answer for a protocol.
        reads: the typed tables that it reads, given the protocol; `_errors` may be among them.
        writes: the answer tables with their schemas; each begins with `protocol` and `date`.
        keeps: the state tables with their schemas.
        advance: computes a step.
    """

    name: str
    applies: Callable[[str], bool]
    reads: Callable[[str], tuple[str, ...]]
    writes: Mapping[str, StructType]
    keeps: Mapping[str, StructType]
    advance: Advance


class RollUp(NamedTuple):
    """Answer that is computed again for whole dates.

    Attributes:
        name: what it is called.
        applies: whether there is such an answer for a protocol.
        reads: the typed tables that it reads, given the protocol.
        reads_answers: the answer tables that it reads, whole (closed and open).
        writes: the answer tables with their schemas; each begins with `protocol` and `date`.
        compute: returns these tables, given typed tables, answer tables and the protocol.
    """

    name: str
    applies: Callable[[str], bool]
    reads: Callable[[str], tuple[str, ...]]
    reads_answers: tuple[str, ...]
    writes: Mapping[str, StructType]
    compute: Callable[[Frames, Frames, str], dict[str, DataFrame]]


def continued(protocol: str) -> Iterator[Continued]:
    """Yield the continued answers for a protocol."""
    for module in MODULES:
        yield from (
            answer for answer in getattr(import_module(module), "CONTINUED", ()) if answer.applies(protocol)
        )


def roll_ups(protocol: str) -> Iterator[RollUp]:
    """Yield the roll-ups for a protocol, each after those whose tables it reads."""
    for module in MODULES:
        yield from (
            answer for answer in getattr(import_module(module), "ROLL_UPS", ()) if answer.applies(protocol)
        )


def answer_schemas() -> dict[str, StructType]:
    """Return every answer table's schema, by name."""
    schemas: dict[str, StructType] = {}
    for module in MODULES:
        loaded = import_module(module)
        for answer in (*getattr(loaded, "CONTINUED", ()), *getattr(loaded, "ROLL_UPS", ())):
            schemas |= answer.writes
    return schemas
