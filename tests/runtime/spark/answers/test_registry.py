"""Every answer for every protocol: what is stated of a protocol fits its tables, and tables have their stated columns."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from specwire.runtime.spark.answers.answer import Continued, Frames, RollUp, Sums
from specwire.runtime.spark.answers.dialogs import conversations
from specwire.runtime.spark.answers.protocol_specifics import SPECIFICS, ProtocolSpecifics, specifics_of
from specwire.runtime.spark.answers.registry import CONTINUED, ROLL_UPS, SUMS, all_sums, continued, roll_ups
from specwire.runtime.spark.protocols import known_protocols, load_schemas
from tests.runtime.spark.answers.traffic import typed_of


def test_specifics_are_of_known_protocols_and_messages() -> None:
    """Each entry is for a package, and names messages of it."""
    assert set(SPECIFICS) <= set(known_protocols())
    for protocol, its in SPECIFICS.items():
        numbering = its.numbering
        named = [its.topics, its.heartbeats, its.greetings, its.farewells]
        named += [numbering.columns, numbering.filtered_by, numbering.restarts] if numbering else []
        assert {message for names in named for message in names} <= set(load_schemas(protocol).SCHEMAS)
    assert specifics_of("zmtp") == ProtocolSpecifics()


def test_a_roll_up_comes_after_the_answers_that_it_reads() -> None:
    """Names are unique, and each table is written by one answer."""
    answers: tuple[Continued | Sums | RollUp, ...] = (*CONTINUED, *SUMS, *ROLL_UPS)
    tables = [table for one in CONTINUED for table in one.writes]
    tables += [table for roll_up in ROLL_UPS for table in roll_up.writes] + [sums.name for sums in SUMS]
    assert len({answer.name for answer in answers}) == len(answers)
    assert len(set(tables)) == len(tables)
    written = {table for answer in CONTINUED for table in answer.writes}
    assert all(set(sums.reads_answers) <= written for sums in SUMS)
    for roll_up in ROLL_UPS:
        assert set(roll_up.reads_sums) <= {sums.name for sums in SUMS}
        assert set(roll_up.reads_answers) <= written
        written |= set(roll_up.writes)


@pytest.mark.spark
@pytest.mark.parametrize("protocol", known_protocols())
def test_tables_have_their_stated_columns(spark: SparkSession, protocol: str) -> None:
    """Names, types and comments; on no messages at all, which have no answers either.

    Conversations run the machines at once, and are tested elsewhere.
    """
    typed = typed_of(spark, [], protocol)
    answers: dict[str, DataFrame] = {}
    for answer in continued(protocol):
        if answer is not conversations.CONTINUED:
            step = answer.advance({name: typed[name] for name in answer.reads(protocol)}, protocol, None)
            _check(step.whole(), answer.writes)
            _check(step.closed, answer.writes)
            assert {name: frame.columns for name, frame in step.state.items()} == {
                name: schema.fieldNames() for name, schema in answer.keeps.items()
            }
            answers |= step.whole()
            step.release()
    added: dict[str, DataFrame] = {}
    for sums in all_sums(protocol):
        its = {name: typed[name] for name in sums.reads(protocol)}
        closed = {name: answers[name] for name in sums.reads_answers if name in answers}
        rows = sums.select(its, closed, protocol)
        added[sums.name] = sums.add_up(rows, protocol)
        _check({sums.name: added[sums.name]}, {sums.name: sums.schema})
    for roll_up in roll_ups(protocol):
        read = {name: added[name] for name in roll_up.reads_sums if name in added}
        known = {name: answers[name] for name in roll_up.reads_answers if name in answers}
        made = roll_up.compute(read, known, protocol)
        _check(made, roll_up.writes)


def _check(frames: Frames, schemas: Mapping[str, StructType]) -> None:
    stated = {name: [(field.name, field.dataType) for field in schema] for name, schema in schemas.items()}
    assert {
        name: [(field.name, field.dataType) for field in frame.schema] for name, frame in frames.items()
    } == stated
    for name, frame in frames.items():
        assert [field.metadata for field in frame.schema] == [field.metadata for field in schemas[name]]
