"""Syncing in groups: each file gets its own outcome, in the order that was asked."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from specwire.runtime.filemq.placing import THREADS, Syncing


@pytest.mark.parametrize("count", [0, 1, 2, THREADS, 2 * THREADS + 3])
def test_each_file_has_its_own_outcome(tmp_path: Path, count: int) -> None:
    syncing = Syncing()
    with (tmp_path / "file").open("wb") as file:
        bad, other_end = os.pipe()  # nothing that has a place on a disk
        good = file.fileno()
        outcomes = syncing.sync([bad if number % 3 == 0 else good for number in range(count)])
    os.close(bad)
    os.close(other_end)
    syncing.close()
    assert [error and error.errno for error in outcomes] == [
        errno.EINVAL if number % 3 == 0 else None for number in range(count)
    ]
