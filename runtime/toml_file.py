"""Files in TOML that people write: configuration, lists of clients, scenarios."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

LARGEST_OCTETS = 16 * 1024 * 1024
"""Nobody writes more; what is larger is some other file, or one without an end."""


class TomlFileError(ValueError):
    """A file that is no TOML; what is wrong with it, to stand behind its name."""


def read_toml(file: Path) -> dict[str, Any]:
    """Return the tables of a file; raises TomlFileError where it cannot be read or is no TOML."""
    try:
        with file.open("rb") as stream:
            octets = stream.read(LARGEST_OCTETS + 1)
    except OSError as error:
        raise TomlFileError(f"cannot be read: {error.strerror}") from None
    if len(octets) > LARGEST_OCTETS:
        raise TomlFileError(f"is larger than {LARGEST_OCTETS:,} octets, which no such file is")
    try:
        return tomllib.loads(octets.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise TomlFileError(
            f"is not UTF-8, as TOML has to be, from octet {error.start:,} on; save it as that"
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise TomlFileError(f"is not TOML: {error}") from None
    except RecursionError:
        raise TomlFileError("is not TOML that can be read: it is nested too deeply") from None
