"""The folder of a job: whose folders are refused, and the files that are distributed."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from specwire.runtime.cli.job.checks import compare_files
from specwire.runtime.cli.job.job import run_job
from specwire.runtime.cli.job.workspace import (
    MARK,
    JobFolderError,
    change_files,
    digest_folder,
    make_files,
)
from tests.runtime.cli.commands import specwire


def _ignore(step: str, done: int, total: int) -> None:
    """Progress that nobody watches."""


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(JobFolderError, match="not the output of an earlier run"):
        run_job(tmp_path, progress=_ignore)
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


@pytest.mark.parametrize("mark", ["", "{}", '{"name": "backup"}', "[1]", '{"files": 3}', "\0\udcff"])
def test_a_folder_with_another_job_file_is_refused(tmp_path: Path, mark: str) -> None:
    """Other programs write files of this name, too."""
    (tmp_path / MARK).write_bytes(mark.encode(errors="surrogateescape"))
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(JobFolderError, match="not the output of an earlier run"):
        run_job(tmp_path, progress=_ignore)
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_a_file_is_refused_before_any_work(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "out").touch()
    outcome = specwire(capfd, "run", "--out", str(tmp_path / "out"), "--grammars", str(tmp_path))
    error = f"specwire: {tmp_path / 'out'} is a file; name a folder with --out\n"
    assert (outcome.status, outcome.out, outcome.err) == (2, "", error)


def test_a_folder_in_use_is_refused_and_not_changed(tmp_path: Path) -> None:
    (tmp_path / MARK).write_text('{"running": true}')
    (tmp_path / "published").mkdir()
    with (tmp_path / MARK).open("rb") as mark:
        fcntl.flock(mark, fcntl.LOCK_EX)
        with pytest.raises(JobFolderError, match="another run uses"):
            run_job(tmp_path, progress=_ignore)
    assert (tmp_path / "published").is_dir()


def test_wrong_files_are_found(tmp_path: Path) -> None:
    make_files(tmp_path / "sent", small_files=3, large_octets=10)
    make_files(tmp_path / "received", small_files=3, large_octets=10)
    assert list(compare_files(tmp_path / "sent", {"a": tmp_path / "received"})) == []
    change_files(tmp_path / "sent")
    (sentence,) = compare_files(tmp_path / "sent", {"a": tmp_path / "received"})
    assert sentence.startswith("a: 3 of 8 files are missing, wrong or too many: notes/added.txt")


def test_digests_omit_hidden_files(tmp_path: Path) -> None:
    (tmp_path / ".part").write_text("x")
    (tmp_path / "file").write_bytes(b"abc")
    # The SHA-1 of "abc" is the first example of FIPS 180-2.
    assert digest_folder(tmp_path) == {"file": "a9993e364706816aba3e25717850c26c9cd0d89d"}
