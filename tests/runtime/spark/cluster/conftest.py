"""Fixtures of the tests that start a Spark of their own."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from specwire.runtime.spark.cluster.building import write_package
from specwire.runtime.spark.cluster.package import Package
from specwire.runtime.spark.session.target import JAVA_VERSION, find_jar, find_java
from tests.runtime.spark.cluster.servers import Server, connect_server


@pytest.fixture(scope="package", autouse=True)
def python_of_executors() -> Iterator[None]:
    """Executors find the Python of the tests, which need not be on the path under its version."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPECWIRE_PYTHON", str(getattr(sys, "_base_executable", sys.executable)))
        yield


@pytest.fixture(scope="package")
def package(tmp_path_factory: pytest.TempPathFactory) -> Package:
    """The package of what is installed here, in a folder that is not easy to spell."""
    return write_package(tmp_path_factory.mktemp("package") / "a package, whole", find_jar())


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A Connect server; tests that need it are skipped where something it needs is not there."""
    if find_java() is None:
        pytest.skip(f"Spark needs Java {JAVA_VERSION} or newer")
    for library in ("grpc", "grpc_status", "zstandard"):
        pytest.importorskip(library, reason=f"Spark Connect needs {library}: specwire[connect]")
    with connect_server(tmp_path_factory.mktemp("server")) as running:
        yield running
