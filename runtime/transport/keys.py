"""CURVE keys in files: a pair for each peer, the public half to be given to others.

``NAME.key`` holds the public key, ``NAME.key_secret`` both, in the format (ZPL) that czmq and pyzmq read and write.
The secret file is for its owner alone (mode 0600) from the moment it exists, and nothing is overwritten: a
lost secret key cannot be made again.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

import msgspec
import zmq
from zmq.auth import load_certificate

PUBLIC_SUFFIX = ".key"
SECRET_SUFFIX = ".key_secret"
Z85_LENGTH = 40
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class KeyFileError(Exception):
    """A key file cannot be made or used; `str()` names the file, the reason, and what to do."""


class KeyPair(msgspec.Struct, frozen=True):
    """A peer's own keys, as Z85 text of 40 characters each."""

    public: str
    secret: str

    def __repr__(self) -> str:
        return f"KeyPair(public={self.public!r}, secret=...)"  # a secret does not belong into a log


def make_keys(folder: Path, name: str) -> tuple[Path, Path]:
    """Make a pair of keys and return the files of the public and of the secret one.

    Raises:
        KeyFileError: a file of that name is there, `name` is no name of a file or cannot be printed, or the folder cannot be written.
    """
    if not name or name in (".", "..") or "/" in name or "\0" in name:
        raise KeyFileError(f"{name!r} cannot be the name of a key: it names no file in {folder}")
    if not name.isprintable():  # nor are octets that are not UTF-8
        raise KeyFileError(
            f"{name!r} cannot be the name of a key: use characters of UTF-8 that can be printed"
        )
    if folder.exists() and not folder.is_dir():
        raise KeyFileError(f"{folder} is a file, and keys are written to a folder: name one")
    public, secret = (key.decode() for key in zmq.curve_keypair())
    files = folder / (name + PUBLIC_SUFFIX), folder / (name + SECRET_SUFFIX)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # The secret one first: a public key whose secret could not be kept is of no use.
        _write(files[1], 0o600, f'    public-key = "{public}"\n    secret-key = "{secret}"\n')
        _write(files[0], 0o644, f'    public-key = "{public}"\n')
    except FileExistsError as error:
        raise KeyFileError(f"{error.filename} exists: choose another name, or move it away first") from None
    except OSError as error:
        raise KeyFileError(f"{error.filename or folder} cannot be written: {error.strerror}") from None
    return files


def _write(file: Path, mode: int, keys: str) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(f"metadata\n    made-by = specwire\ncurve\n{keys}")
        stream.flush()
        os.fsync(stream.fileno())


def load_keys(file: Path) -> KeyPair:
    """Return the pair in a secret key file.

    Raises:
        KeyFileError: the file cannot be read, holds no pair, or others may read it.
    """
    public, secret = _load(file)
    if secret is None:
        raise KeyFileError(f"{file} holds a public key only: name the file that ends with {SECRET_SUFFIX}")
    if file.stat().st_mode & _OTHERS:
        raise KeyFileError(f"{file} can be read by others: chmod 600 it, or make new keys if it was not safe")
    return KeyPair(public, secret)


def load_public_key(file: Path) -> str:
    """Return the public key in a key file of either kind; raises KeyFileError."""
    return _load(file)[0]


def _load(file: Path) -> tuple[str, str | None]:
    try:
        public, secret = load_certificate(file)
    except OSError as error:
        raise KeyFileError(f"{file} cannot be read: {error.strerror or 'there is no such file'}") from None
    except ValueError:
        raise KeyFileError(f"{file} holds no CURVE key; `specwire keys` makes such files") from None
    return check_key(public, file), None if secret is None else check_key(secret, file)


def check_key(key: bytes | str, place: Path | str) -> str:
    """Return a Z85 key as text; raises KeyFileError, naming `place`, where it is none."""
    try:
        text = key if isinstance(key, str) else key.decode("ascii")
        if len(text) != Z85_LENGTH or len(zmq.utils.z85.decode(text)) != 32:
            raise ValueError
    except (ValueError, KeyError, UnicodeDecodeError):
        raise KeyFileError(f"{place} has a key that is not {Z85_LENGTH} characters of Z85") from None
    return text
