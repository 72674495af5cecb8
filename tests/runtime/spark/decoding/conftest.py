"""Decoding is tested as users run it: Spark compiles its queries, which is where the JVM backend is called from."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

COMPILED = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
"""Spark's own defaults, which the tests' `spark-defaults.conf` changes."""


@pytest.fixture(autouse=True)
def compiled_queries(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let the shared session compile queries for as long as one of these tests uses it."""
    if "spark" not in request.fixturenames:
        yield
        return
    spark: SparkSession = request.getfixturevalue("spark")
    before = {name: str(spark.conf.get(name)) for name in COMPILED}
    for name, value in COMPILED.items():
        spark.conf.set(name, value)
    yield
    for name, value in before.items():
        spark.conf.set(name, value)
