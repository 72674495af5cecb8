"""The one Spark session of a test run: a session costs ten seconds, a query in it a tenth.

Tests that use it are marked `spark`, so that one worker runs them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from py4j.java_gateway import JavaClass, JavaMember, JVMView  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from specwire.runtime.spark.session.installed_java import JAVA_VERSION, find_java
from specwire.runtime.spark.session.opening import open_session
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
    with remembered_names(), open_session("local[2]", SETTINGS) as session:
        yield session


@contextmanager
def remembered_names() -> Iterator[None]:
    """Let Java be asked once for each class and each function of one.

    PySpark asks at each function of columns, and Java looks for a class of that name in some three hundred jars
    before it finds the right one.
    """
    found: dict[tuple[object, str, str], object] = {}

    def remembering(look_up: Callable[[Any, str], object]) -> Callable[[Any, str], object]:
        def remember(owner: Any, name: str) -> object:
            place = owner._fqn if isinstance(owner, JavaClass) else owner._id
            key = (owner._gateway_client, place, name)
            if key not in found:
                answer = look_up(owner, name)
                if not isinstance(answer, JavaClass | JavaMember):
                    return answer
                found[key] = answer
            return found[key]

        return remember

    with pytest.MonkeyPatch.context() as patch:
        for kind in (JVMView, JavaClass):
            patch.setattr(kind, "__getattr__", remembering(kind.__getattr__))
        yield
