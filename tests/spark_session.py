"""The Spark session that the tests of a worker share: a session costs ten seconds, a query in it a tenth.

`tests/conftest.py` distributes the tests that use it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from py4j.java_gateway import JavaClass, JavaMember, JVMView  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from specwire.runtime.spark.pipeline import advance
from specwire.runtime.spark.session import opening
from specwire.runtime.spark.session.executors import ship_packages
from specwire.runtime.spark.session.opening import open_session
from specwire.runtime.spark.session.target import JAVA_VERSION, find_java
from tests.conftest import BRIEF_JAVA
from tests.runtime.cli.commands import Outcome, specwire

Command = Callable[..., Outcome]

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
    with (
        pytest.MonkeyPatch.context() as patch,
        open_session("local[2]", SETTINGS) as session,
    ):
        for kind in (JVMView, JavaClass):
            remember_members(patch, kind)
        yield session


def remember_members(patch: pytest.MonkeyPatch, kind: type[JVMView | JavaClass]) -> None:
    """Let py4j ask Java only once for each class and each static method.

    PySpark looks up `functions.col` and its like again for every expression. These lookups are a
    third of the 30,000 messages to Java for a small run of the pipeline.
    """
    look_up = kind.__getattr__

    def find(self: object, name: str) -> object:
        found = look_up(self, name)
        if isinstance(found, JavaClass | JavaMember):
            vars(self)[name] = found
        return found

    patch.setattr(kind, "__getattr__", find)


@pytest.fixture
def shared_opening(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give what opens a session in this process the shared one."""

    @contextmanager
    def shared(*_: object) -> Iterator[SparkSession]:
        ship_packages(spark)
        yield spark

    for module in (opening, advance):
        monkeypatch.setattr(module, "open_session", shared)


@pytest.fixture
def command(shared_opening: None, capfd: pytest.CaptureFixture[str]) -> Command:
    """Give what runs `specwire ARGUMENTS` in this process, with the shared session.

    In a process of its own, `pipeline run` takes 25 seconds of processor time, most of it for the start of Java.
    """
    return lambda *arguments: specwire(capfd, *arguments)
