"""Where a session's sockets are, and what is done where temporary files have long names."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from specwire.runtime.spark.session import opening
from specwire.runtime.spark.session.opening import LONGEST, socket_settings

ENABLED = "spark.python.unix.domain.socket.enabled"
FOLDER = "spark.python.unix.domain.socket.dir"


def test_a_folder_of_the_session_holds_its_sockets() -> None:
    """As long as the name of a socket in it has at most 104 octets."""
    own = Path("/" + "a" * (LONGEST - 1))
    with socket_settings(own) as settings:
        assert settings == {ENABLED: "true", FOLDER: str(own)}
    assert len(f"{own}/.01234567-89ab-cdef-0123-456789abcdef.sock") == 104


@pytest.mark.parametrize("name", ["/" + "a" * LONGEST, "/" + "ä" * (LONGEST // 2 + 1)])
def test_a_long_name_is_replaced_for_the_time_of_a_block(name: str) -> None:
    """By a folder that nobody else can reach into; octets count, not characters."""
    with socket_settings(Path(name)) as settings:
        folder = Path(settings[FOLDER])
        assert settings[ENABLED] == "true"
        assert len(str(folder)) <= LONGEST
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        (folder / ".left-behind.sock").touch()
    assert not folder.exists()


def test_without_a_short_folder_nothing_is_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """TCP needs no folder."""
    monkeypatch.setattr(opening, "SHORT", tmp_path / "absent")
    with socket_settings(Path("/" + "a" * LONGEST)) as settings:
        assert settings == {}


@pytest.mark.spark
def test_workers_are_reached_by_them(spark: SparkSession) -> None:
    """In a folder of the session's own, of mode 0700, because whoever reaches a socket is taken for a worker."""

    def same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return batches

    assert spark.range(3).mapInArrow(same, "id long").count() == 3
    folder = Path(spark.sparkContext.getConf().get(FOLDER, ""))
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert any(stat.S_ISSOCK(path.stat().st_mode) for path in folder.glob(".*.sock"))
