"""Settings of FILEMQ's commands: what the text of a folder means."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from specwire.runtime.filemq.settings import read_publication


@pytest.mark.parametrize(
    ("text", "folder", "path"),
    [
        ("photos", "photos", "/photos"),
        ("photos=/x", "photos", "/x"),
        ("photos=/", "photos", "/"),
        ("./photos=/x", "photos", "/x"),
        ("photos/=/x/y", "photos", "/x/y"),
        ("{tmp}//photos=/x", "photos", "/x"),
        ("odd=/photos", "odd=/photos", "/photos"),
        ("odd=/photos=/x", "odd=/photos", "/x"),
    ],
)
def test_path_of_a_publication(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, folder: str, path: str
) -> None:
    """A folder whose name looks like a path is the folder."""
    for name in ("photos", "odd=/photos"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    published = read_publication(text.replace("{tmp}", os.fspath(tmp_path)), alone=False)
    assert (published.folder, published.path) == (tmp_path / folder, path)


def test_a_single_folder_without_a_path_is_the_root(tmp_path: Path) -> None:
    assert read_publication(f"{tmp_path}/", alone=True).path == "/"
    assert read_publication(f"{tmp_path}/=/x", alone=True).path == "/x"


def test_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="none is not a folder"):
        read_publication(f"{tmp_path}/none=/x", alone=False)
