"""Where a session's sockets are, and what is done where temporary files have long names."""

from __future__ import annotations

import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from specwire.runtime.spark.session import opening
from specwire.runtime.spark.session.opening import LONGEST, SHORT, session_folder, socket_settings

ENABLED = "spark.python.unix.domain.socket.enabled"
FOLDER = "spark.python.unix.domain.socket.dir"


def test_the_longest_name_of_a_folder() -> None:
    """The name of a socket in it has at most 104 octets; octets count, not characters."""
    folder = Path("/" + "a" * (LONGEST - 1))
    assert socket_settings(folder) == {ENABLED: "true", FOLDER: str(folder)}
    assert len(f"{folder}/.01234567-89ab-cdef-0123-456789abcdef.sock") == 104
    assert socket_settings(Path("/" + "a" * LONGEST)) == {}
    assert socket_settings(Path("/" + "ä" * (LONGEST // 2 + 1))) == {}


def test_a_session_has_a_short_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """That nobody else can reach into, and that is removed with what is left in it."""
    place = tmp_path / ("long" * 20)
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    with session_folder() as folder:
        assert folder.parent == SHORT and FOLDER in socket_settings(folder)
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        (folder / ".left-behind.sock").touch()
    assert not folder.exists()


def test_without_a_short_folder_nothing_is_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """TCP needs no folder."""
    place = tmp_path / ("long" * 20)
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    monkeypatch.setattr(opening, "SHORT", tmp_path / "absent")
    with session_folder() as folder:
        assert folder.parent == place and socket_settings(folder) == {}


@pytest.mark.spark
def test_workers_are_reached_by_them(spark: SparkSession) -> None:
    """In a folder of the session's own, of mode 0700, because whoever reaches a socket is taken for a worker."""

    def same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return batches

    assert spark.range(3).mapInArrow(same, "id long").count() == 3
    folder = Path(spark.sparkContext.getConf().get(FOLDER, ""))
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert any(stat.S_ISSOCK(path.stat().st_mode) for path in folder.glob(".*.sock"))
