"""`specwire pipeline package`: what it writes, what it prints, and where it refuses to write."""

from __future__ import annotations

import ast
import json
import tarfile
from importlib.metadata import distribution
from pathlib import Path

import msgspec
import pytest

from specwire.runtime.spark.cluster import building
from specwire.runtime.spark.cluster.package import ARCHIVE, JAR, JOB, NOTE, Note
from tests.runtime.cli.commands import specwire


@pytest.fixture(autouse=True)
def small_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pack one small dependency alone: the large ones are packed where an executor uses them."""
    found = {"construct": distribution("construct")}
    monkeypatch.setattr(building, "find_distributions", lambda: found)


def test_a_package_is_written_and_its_use_is_printed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Archive, note and job; the jar where there is one."""
    out = tmp_path / "a package"
    printed = specwire(capfd, "pipeline", "package", "--out", str(out), "--master", "yarn")
    assert printed.status == 0, printed.err
    assert {ARCHIVE, NOTE, JOB} <= {path.name for path in out.iterdir()} <= {ARCHIVE, NOTE, JOB, JAR}
    with tarfile.open(out / ARCHIVE) as tar:
        names = tar.getnames()
    assert "bin/python" in names
    assert "site-packages/construct/core.py" in names
    ast.parse((out / JOB).read_text())
    assert (
        f"specwire pipeline run --capture CAPTURE --out OUT \\\n    --master yarn \\\n    --package '{out}'"
        in (printed.out)
    )
    assert "spark-submit --master yarn" in printed.out
    assert "--remote sc://HOST:15002" in printed.out
    note = msgspec.json.decode((out / NOTE).read_bytes(), type=Note)
    assert note.archive_octets == (out / ARCHIVE).stat().st_size


def test_it_is_told_as_json(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """For programs that submit it."""
    printed = specwire(capfd, "pipeline", "package", "--out", str(tmp_path / "out"), "--json")
    told = json.loads(printed.out)
    assert told["archive"] == str(tmp_path / "out" / ARCHIVE)
    assert told["distributions"] == {"construct": distribution("construct").version}
    assert len(told["archive_sha256"]) == 64


def test_an_earlier_package_is_replaced(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The same files give the same archive."""
    command = ("pipeline", "package", "--out", str(tmp_path / "out"), "--json")
    assert specwire(capfd, *command).out == specwire(capfd, *command).out


def test_another_folder_is_left_alone(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Whatever is in it."""
    (tmp_path / "thesis.txt").touch()
    printed = specwire(capfd, "pipeline", "package", "--out", str(tmp_path))
    assert printed.status == 2
    assert printed.err.splitlines()[-1] == (
        f"specwire: {tmp_path}: the folder has another file (thesis.txt); name another folder"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_file_is_not_replaced(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """By a folder of its name."""
    (tmp_path / "file").touch()
    printed = specwire(capfd, "pipeline", "package", "--out", str(tmp_path / "file"))
    assert (printed.status, printed.err.splitlines()[-1]) == (
        2,
        f"specwire: {tmp_path / 'file'}: the package would replace a file",
    )
