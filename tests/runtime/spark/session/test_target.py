"""Where a session runs, and what is refused before anything is started."""

from __future__ import annotations

import importlib.util
import socket
import sys
from pathlib import Path

import pytest

from specwire.runtime.spark.errors import InputError, JobError
from specwire.runtime.spark.session import connect
from specwire.runtime.spark.session.opening import open_session
from specwire.runtime.spark.session.target import Target

needs_grpc = pytest.mark.skipif(
    importlib.util.find_spec("grpc") is None, reason="Spark Connect needs grpcio: specwire[connect]"
)


def test_a_master_and_a_server_exclude_each_other() -> None:
    """A session is in one place."""
    with pytest.raises(InputError, match="on a master or behind a Spark Connect server, not both"):
        Target(master="yarn", remote="sc://host")


@pytest.mark.parametrize(
    ("master", "local"),
    [
        (None, True),
        ("local", True),
        ("local[2]", True),
        ("local-cluster[2,1,1024]", False),
        ("spark://host:7077", False),
        ("k8s://https://host", False),
        ("yarn", False),
    ],
)
def test_only_a_local_master_is_sure_to_share_files(master: str | None, local: bool) -> None:
    """Executors of all others may be on other machines."""
    assert Target(master=master).local is local


def test_spark_submit_decides_where_nothing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """It tells by the variable that leads to its Java process."""
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    assert Target().submitted and not Target().local
    assert not Target(master="local[2]").submitted
    assert not Target(remote="sc://host").submitted


def test_a_connect_server_does_not_share_files_for_sure() -> None:
    """Wherever it is."""
    assert not Target(remote="sc://127.0.0.1:15002").local


@needs_grpc
@pytest.mark.parametrize(
    "url", ["http://host", "sc://", "sc://host:port", "sc://host:99999", "sc://host/path"]
)
def test_a_url_of_another_kind_is_refused(url: str) -> None:
    """With what it should be; the URL is not repeated, for it may hold a token."""
    expected = r"it must be sc://host:port or sc://host:port/;name=value$"
    with pytest.raises(InputError, match=expected), open_session(Target(remote=url)):
        pass


@needs_grpc
def test_a_server_that_does_not_answer_is_told_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """PySpark itself would try for ten minutes; a token in the URL is not repeated."""
    monkeypatch.setattr(connect, "ANSWER_S", 0.5)
    with socket.socket() as taken:
        # A port that is bound and not listened on refuses connections, and nobody else can take it.
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with (
            pytest.raises(JobError) as caught,
            open_session(Target(remote=f"sc://127.0.0.1:{port}/;token=secret")),
        ):
            pass
    assert str(caught.value) == f"no Spark Connect server answers at 127.0.0.1:{port}"


def test_a_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is tried."""
    monkeypatch.setitem(sys.modules, "pyspark.sql.connect.client", None)
    expected = r"^Spark Connect cannot be used \(import of .*\): pip install 'specwire\[connect\]'$"
    with pytest.raises(JobError, match=expected), open_session(Target(remote="sc://host")):
        pass


def test_a_folder_that_is_no_package_is_refused_first(tmp_path: Path) -> None:
    """Before Java is started."""
    with pytest.raises(InputError, match="this is no package folder"), open_session(Target(package=tmp_path)):
        pass
