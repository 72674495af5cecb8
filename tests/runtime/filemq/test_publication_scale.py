"""What looking at a published folder costs when there are many files: in steps, not in seconds."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from specwire.runtime.filemq.catalogue import Gone
from specwire.runtime.filemq.names import folders_of
from specwire.runtime.filemq.publication import Publication

FOLDERS, FILES = 40, 10


def test_many_removed_folders_take_one_walk_through_the_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in range(FOLDERS):
        (tmp_path / f"{folder:02}" / "deep").mkdir(parents=True)
        for n in range(FILES):
            (tmp_path / f"{folder:02}" / "deep" / str(n)).write_bytes(b"")
    publication = Publication(tmp_path)
    publication.open()
    publication.scan()
    walked: list[str] = []

    def count(name: str) -> Iterator[str]:
        walked.append(name)
        return folders_of(name)

    monkeypatch.setattr("specwire.runtime.filemq.index.folders_of", count)
    places = sorted(tmp_path.iterdir())[: FOLDERS // 2]
    for place in places:
        shutil.rmtree(place)
    changes = publication.examine(map(str, places))
    publication.close()
    assert sum(isinstance(change, Gone) for change in changes) == FOLDERS // 2 * FILES
    # One walk through all names, and once more each file that is forgotten.
    assert len(walked) <= FOLDERS * FILES + FOLDERS // 2 * FILES
