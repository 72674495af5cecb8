"""`specwire keys`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from specwire.runtime.transport.keys import load_keys
from tests.runtime.cli.commands import specwire


def test_keys_are_made_for_each_name(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    done = specwire(capfd, "keys", "server", "site b", "--to", str(tmp_path), "--json")
    assert done.status == 0
    rows = json.loads(done.out)
    assert [row["name"] for row in rows] == ["server", "site b"]
    for row in rows:
        pair = load_keys(Path(row["secret"]))
        assert row["key"] == pair.public
        assert pair.secret not in done.out


def test_keys_that_are_there_are_kept(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    specwire(capfd, "keys", "server", "--to", str(tmp_path))
    before = load_keys(tmp_path / "server.key_secret")
    again = specwire(capfd, "keys", "server", "--to", str(tmp_path))
    assert again.status == 2
    assert "exists: choose another name" in again.err
    assert load_keys(tmp_path / "server.key_secret") == before


@pytest.mark.parametrize("name", ["two\nlines", "\x1b[31m", "\udcff"])
def test_names_that_cannot_be_printed(name: str, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The last is how Python shows an argument that is not UTF-8."""
    refused = specwire(capfd, "keys", name, "--to", str(tmp_path))
    assert refused.status == 2 and "cannot be the name of a key" in refused.err
    assert refused.err.count("\n") == 1 and refused.err.strip().isprintable()
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_no_folder_for_keys(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    refused = specwire(capfd, "keys", "a", "--out", str(tmp_path / "file"))
    assert refused.status == 2
    assert refused.err.endswith("file is a file, and keys are written to a folder: name one\n")
