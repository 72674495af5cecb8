"""The folder of the sockets: made for one user, and not used where somebody else could have made or filled it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from specwire.runtime.transport.status_folder import (
    Address,
    StatusFolderError,
    address_in,
    list_addresses,
    locate_status_folder,
    open_status_folder,
)


def test_it_is_in_the_users_runtime_folder_where_there_is_one(tmp_path: Path) -> None:
    assert locate_status_folder({"XDG_RUNTIME_DIR": str(tmp_path)}) == tmp_path / "specwire"


@pytest.mark.parametrize("runtime", [None, "", "relative", "/there/is/no/such/folder"])
def test_else_it_has_the_users_number_below_the_temporary_folder(
    runtime: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    environment = {} if runtime is None else {"XDG_RUNTIME_DIR": runtime}
    assert locate_status_folder(environment) == tmp_path / f"specwire-{os.geteuid()}"


def test_it_is_closed_to_others_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        open_status_folder(tmp_path / "a")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o700
    open_status_folder(tmp_path / "a")  # the next process finds it


def refused(folder: Path) -> str:
    """Return why both a process that answers and one that asks leave this folder alone."""
    with pytest.raises(StatusFolderError) as opening:
        open_status_folder(folder)
    with pytest.raises(StatusFolderError) as listing:
        list_addresses(folder)
    assert str(opening.value) == str(listing.value)
    return str(listing.value)


def test_a_symbolic_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert "is no folder" in refused(tmp_path / "link")


def test_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "is no folder" in refused(tmp_path / "file")


@pytest.mark.parametrize("mode", [0o750, 0o701, 0o777])
def test_a_folder_that_is_open_to_others_is_refused(mode: int, tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(mode)
    assert "is open to others" in refused(tmp_path / "open")


def test_a_folder_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "foreign").mkdir(mode=0o700)
    mine = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
    assert "belongs to another user" in refused(tmp_path / "foreign")


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    with pytest.raises(StatusFolderError, match="cannot be made: No such file"):
        open_status_folder(tmp_path / "missing" / "a")


def test_only_sockets_by_their_names_are_listed(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    assert list_addresses(folder) == []
    open_status_folder(folder)
    for name in ("b-role-12.sock", "a-3.sock", "a-3.new", "a-x.sock", "-3.sock", "a-3.sock.sock", "A-1.sock"):
        (folder / name).touch()
    assert list_addresses(folder) == [
        Address("a", 3, folder / "a-3.sock"),
        Address("b-role", 12, folder / "b-role-12.sock"),
    ]
    assert address_in(folder, "b-role", 12).path == folder / "b-role-12.sock"
