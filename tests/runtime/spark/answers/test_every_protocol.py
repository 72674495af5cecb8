"""Every answer for every protocol: what is stated of a protocol fits its tables, and tables have their stated columns."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from specwire.runtime.spark.answers import (
    faults,
    gaps,
    graph,
    health,
    jobs,
    particulars,
    rates,
    requests,
    topics,
    transfers,
)
from specwire.runtime.spark.answers.registry import MODULES
from specwire.runtime.spark.answers.step import Frames
from specwire.runtime.spark.protocols import known_protocols, load_schemas
from tests.runtime.spark.answers.traffic import typed_of

OURS = (requests, jobs, transfers, health, gaps, rates, topics, faults, graph)


def test_particulars_are_of_known_protocols_and_messages() -> None:
    """A module is named as a package, and names messages of it."""
    folder = Path(str(import_module(particulars.PACKAGE).__file__)).parent
    stated = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert stated <= set(known_protocols())
    for protocol in stated:
        its = particulars.particulars_of(protocol)
        numbers = its.numbers
        chosen = [its.topics, its.beats, its.greetings, its.farewells]
        chosen += [numbers.columns, numbers.chosen_by, numbers.restarts] if numbers else []
        assert {message for names in chosen for message in names} <= set(load_schemas(protocol).SCHEMAS)
    assert particulars.particulars_of("zmtp") == particulars.Particulars()


def test_answers_are_listed() -> None:
    """Each module once."""
    assert len(set(MODULES)) == len(MODULES)
    assert {module.__name__ for module in OURS} <= set(MODULES)


@pytest.mark.spark
@pytest.mark.parametrize("protocol", known_protocols())
def test_tables_have_their_stated_columns(spark: SparkSession, protocol: str) -> None:
    """Names, types and comments; on no messages at all, which have no answers either."""
    typed = typed_of(spark, [], protocol)
    answers: dict[str, DataFrame] = {}
    for answer in (answer for module in OURS for answer in getattr(module, "CONTINUED", ())):
        if answer.applies(protocol):
            step = answer.advance({name: typed[name] for name in answer.reads(protocol)}, protocol, None)
            _check(step.whole(), answer.writes)
            _check(step.closed, answer.writes)
            assert {name: frame.columns for name, frame in step.state.items()} == {
                name: schema.fieldNames() for name, schema in answer.keeps.items()
            }
            answers |= step.whole()
            step.release()
    for roll_up in (roll_up for module in OURS for roll_up in getattr(module, "ROLL_UPS", ())):
        if roll_up.applies(protocol):
            its = {name: typed[name] for name in roll_up.reads(protocol)}
            known = {name: answers[name] for name in roll_up.reads_answers if name in answers}
            _check(roll_up.compute(its, known, protocol), roll_up.writes)


def _check(frames: Frames, schemas: Mapping[str, StructType]) -> None:
    stated = {name: [(field.name, field.dataType) for field in schema] for name, schema in schemas.items()}
    assert {
        name: [(field.name, field.dataType) for field in frame.schema] for name, frame in frames.items()
    } == stated
    for name, frame in frames.items():
        assert [field.metadata for field in frame.schema] == [field.metadata for field in schemas[name]]
