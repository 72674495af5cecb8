"""A password for the page and the metrics, where other users of the machine are not to read them.

It comes as HTTP's Basic (under any name; browsers ask for it) or as a Bearer token, and nothing is encrypted: it keeps out
others on this machine, and is no way to open the page to a network.
"""

from __future__ import annotations

import base64
import stat
from binascii import Error as NoBase64Error
from hmac import compare_digest
from pathlib import Path

SHORTEST = 12
"""Characters: nobody is kept from trying."""

MAX_OCTETS = 4096
CHALLENGE = 'Basic realm="specwire", charset="UTF-8"'
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def read_password(file: Path) -> str:
    """Return the password in the first line of a file.

    Raises:
        ValueError: the file cannot be read, others may read it, or the password is too short.
    """
    try:
        with file.open("rb") as stream:
            mode = file.stat().st_mode
            line = stream.readline(MAX_OCTETS).decode().strip("\r\n")
    except OSError as error:
        raise ValueError(f"the password in {file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"the password in {file} is not UTF-8") from None
    if mode & _OTHERS:
        raise ValueError(f"the password in {file} can be read by others: chmod 600 it, and choose another")
    if len(line) < SHORTEST:
        raise ValueError(
            f"the password in {file} has {len(line)} characters, and {SHORTEST} are wanted: "
            f"head -c 18 /dev/urandom | base64 makes one"
        )
    return line


def is_allowed(header: str, password: str) -> bool:
    """Whether a request that says ``Authorization: header`` knows the password."""
    scheme, _, said = header.partition(" ")
    match scheme.lower():
        case "bearer":
            offered = said.strip().encode()
        case "basic":
            try:
                offered = base64.b64decode(said.strip(), validate=True).partition(b":")[2]
            except (NoBase64Error, ValueError):
                return False
        case _:
            return False
    return compare_digest(offered, password.encode())
