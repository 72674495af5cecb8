"""Where the processes of one user meet: a folder that nobody else can enter, with a socket for each process.

It is ``$XDG_RUNTIME_DIR/specwire``, or ``specwire-UID`` below the folder for temporary files, where anybody may have
made it first; so it is used only where it is a folder (no symbolic link) of this user that is closed to others.
A socket is named ``ROLE-PID.sock``.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path

import msgspec

from specwire.runtime.transport.errors import TransportError

SUFFIX = ".sock"
RUNTIME_DIR = "XDG_RUNTIME_DIR"
_NAME = re.compile(r"([a-z][a-z0-9-]*)-([0-9]{1,10})\.sock", re.ASCII)
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class StatusFolderError(TransportError):
    """The folder cannot be trusted or made; `str()` says why and what to do."""


class Address(msgspec.Struct, frozen=True, order=True):
    """The socket of one process."""

    role: str
    pid: int
    path: Path


def locate_status_folder(environment: Mapping[str, str]) -> Path:
    """Return where the folder of this user is or would be."""
    runtime = environment.get(RUNTIME_DIR, "")
    if runtime and Path(runtime).is_absolute() and Path(runtime).is_dir():
        return Path(runtime) / "specwire"
    return Path(tempfile.gettempdir()) / f"specwire-{os.geteuid()}"


def open_status_folder(folder: Path) -> None:
    """Make the folder where it is not there; raises StatusFolderError where it is not this user's alone."""
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        pass
    except OSError as error:
        raise StatusFolderError(f"{folder} cannot be made: {error.strerror}") from error
    if fault := fault_in_status_folder(folder):
        raise StatusFolderError(fault)


def fault_in_status_folder(folder: Path) -> str | None:
    """Return why the folder is not to be used, None where it is; raises OSError where it is not there."""
    state = folder.lstat()
    if not stat.S_ISDIR(state.st_mode):
        return f"{folder} is no folder, so it is not used; remove it"
    if state.st_uid != os.geteuid():
        return (
            f"{folder} belongs to another user, so it is not used; set {RUNTIME_DIR} to a folder of your own"
        )
    if state.st_mode & _OTHERS:
        return f"{folder} is open to others, so it is not used; chmod 700 it"
    return None


def address_in(folder: Path, role: str, pid: int) -> Address:
    """Return the place of the socket of process `pid`."""
    return Address(role, pid, folder / f"{role}-{pid}{SUFFIX}")


def list_addresses(folder: Path) -> list[Address]:
    """Return the sockets in the folder, of dead processes too; none where there is no folder.

    Raises:
        StatusFolderError: the folder is there and not to be used.
    """
    try:
        if fault := fault_in_status_folder(folder):
            raise StatusFolderError(fault)
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StatusFolderError(f"{folder} cannot be read: {error.strerror}") from error
    found = [match for name in names if (match := _NAME.fullmatch(name))]
    return sorted(Address(match[1], int(match[2]), folder / match[0]) for match in found)
