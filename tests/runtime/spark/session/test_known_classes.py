"""What PySpark asks Java once, and what it asks each time."""

from __future__ import annotations

from typing import Any

import pytest
from py4j.java_gateway import JavaClass, JavaPackage  # type: ignore[import-untyped]  # py4j has no types
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from specwire.runtime.spark.session.known_classes import NAMES, KnownClass, keep_classes

pytestmark = pytest.mark.spark


@pytest.fixture
def asked(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The questions after a name that PySpark has asked Java since."""
    client: Any = spark.sparkContext._gateway._gateway_client  # type: ignore[union-attr]  # it has one
    questions: list[str] = []
    send = client.send_command

    def note(command: str, *arguments: Any, **options: Any) -> Any:
        kind, *words = command.split("\n")
        if kind == "r":
            questions.append(words[1] if words[0] == "u" else f"{words[1]}.{words[2]}")
        return send(command, *arguments, **options)

    monkeypatch.setattr(client, "send_command", note)
    return questions


def make_column() -> str:
    """Name a column in several ways; return how Spark writes what comes out."""
    return str(
        F.when(F.col("a") > F.lit(1), F.upper("b")).otherwise(F.lit("c")).alias("d", metadata={"x": 1})
    )


def test_a_function_is_asked_for_once(spark: SparkSession, asked: list[str]) -> None:
    """Functions of columns, literals, and lists of columns: the second time there is nothing to ask."""
    frame = spark.createDataFrame([(2, "b")], "a int, b string")
    first = make_column()
    frame.select(F.col("a"), "b")
    asked.clear()
    assert make_column() == first
    assert frame.select(F.col("a"), "b").collect() == [(2, "b")]
    assert [name for name in asked if name.startswith(tuple(NAMES))] == []


def test_every_name_is_a_class_and_stays_one(spark: SparkSession) -> None:
    """As PySpark spells it; keeping it again changes nothing."""
    view = spark.sparkContext._jvm
    kept = {name: getattr(view, name) for name in NAMES}
    assert {type(found) for found in kept.values()} == {KnownClass}
    keep_classes(view)
    assert {name: getattr(view, name) for name in NAMES} == kept


def test_other_names_are_asked_for_each_time(spark: SparkSession, asked: list[str]) -> None:
    """Packages, other classes, and fields, whose values may change."""
    view: Any = spark.sparkContext._jvm
    for _ in range(2):
        number = view.java.lang.Integer
        assert type(number) is JavaClass
        assert KnownClass("java.lang.Integer", number._gateway_client).MAX_VALUE == 2**31 - 1
        assert type(view.nothing) is JavaPackage
    assert [
        asked.count(name) for name in ("java.lang.Integer", "java.lang.Integer.MAX_VALUE", "nothing")
    ] == [2] * 3
