"""Replacing the output folder: all or nothing, and never a folder that is somebody else's."""

from __future__ import annotations

from pathlib import Path

import pytest

from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.pipeline.output import MARK, check_replaceable, replace_folder


def names(folder: Path) -> list[str]:
    """Return all names in a folder, hidden ones too."""
    return sorted(path.name for path in folder.iterdir())


def test_the_new_takes_the_place_of_the_old(tmp_path: Path) -> None:
    """Nothing of the old stays, and nothing beside it."""
    out = tmp_path / "out"
    out.mkdir()
    (out / "old").write_text("")
    with replace_folder(out) as folder:
        (folder / "new").write_text("")
        assert names(out) == ["old"]
    assert names(tmp_path) == ["out"]
    assert names(out) == ["new"]
    assert out.stat().st_mode & 0o777 == 0o700


def test_a_failure_leaves_the_old(tmp_path: Path) -> None:
    """And removes what was begun."""
    out = tmp_path / "out"
    out.mkdir()
    (out / "old").write_text("")
    with pytest.raises(KeyboardInterrupt), replace_folder(out) as folder:
        (folder / "new").write_text("")
        raise KeyboardInterrupt
    assert names(tmp_path) == ["out"]
    assert names(out) == ["old"]


def test_parents_are_made(tmp_path: Path) -> None:
    """A first run into a folder of folders."""
    with replace_folder(tmp_path / "a" / "b") as folder:
        (folder / "new").write_text("")
    assert names(tmp_path / "a" / "b") == ["new"]


def test_an_impossible_place_is_one_sentence(tmp_path: Path) -> None:
    """A file stands where a folder should be made."""
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(InputError, match="the output folder cannot be made"),
        replace_folder(tmp_path / "file" / "b"),
    ):
        pass


@pytest.mark.parametrize("out", ["capture", "capture/out", "."])
def test_output_and_capture_lie_apart(tmp_path: Path, out: str) -> None:
    """Replacing the output must not remove the capture, nor make it foreign."""
    (tmp_path / "capture").mkdir()
    with pytest.raises(InputError, match="must lie apart from the capture folder"):
        check_replaceable(tmp_path / out, tmp_path / "capture")


def test_a_foreign_folder_is_left_alone(tmp_path: Path) -> None:
    """Only an empty folder or an earlier output is replaced."""
    out = tmp_path / "out"
    out.mkdir()
    check_replaceable(out, tmp_path / "capture")
    (out / "thesis.tex").write_text("")
    with pytest.raises(InputError, match="not an earlier output, it is left alone"):
        check_replaceable(out, tmp_path / "capture")
    (out / MARK).write_text("{}")
    check_replaceable(out, tmp_path / "capture")


def test_a_file_is_not_replaced(tmp_path: Path) -> None:
    """Nor taken for a folder."""
    (tmp_path / "out").write_text("")
    with pytest.raises(InputError, match="would replace a file"):
        check_replaceable(tmp_path / "out", tmp_path / "capture")
