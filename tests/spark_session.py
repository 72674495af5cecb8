"""The one Spark session of a test run: a session costs ten seconds, a query in it a tenth.

Tests that use it are marked `spark`, so that one worker runs them all.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from specwire.runtime.spark.session.opening import open_session
from specwire.runtime.spark.session.target import JAVA_VERSION, find_java
from tests.conftest import BRIEF_JAVA

SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "1g",
    # Tests are short: the quick compiler and the plain collector start faster and share two cores better.
    "spark.driver.extraJavaOptions": BRIEF_JAVA,
}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The session; tests that need it are skipped where there is no Java for it."""
    if find_java() is None:
        pytest.skip(f"Spark needs Java {JAVA_VERSION} or newer")
    with open_session("local[2]", SETTINGS) as session:
        yield session
