"""What can be set: the settings of one server, each with its kind, its bounds and its words.

A `Section` is made from what a command declares about its own options, so that a key of the file, an
environment variable and an option always mean the same, and a new option is a new key.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import msgspec

PREFIX = "SPECWIRE"


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One setting.

    Attributes:
        key: its name in the file, which is that of the option without its dashes.
        parameter: the parameter of the command that gets it.
        kind: the Python type, with msgspec's bounds; never with None.
        wanted: the kind in words, for whoever wrote something else.
        help: what it means.
        default: what holds where nobody says anything; None is nothing.
        required: the command does not work without it.
        is_list: it takes several values.
        is_flag: it is true or false.
        paths_end: its text names a file or folder where it ends so, though its kind does not say so; None: never.
    """

    key: str
    parameter: str
    kind: Any
    wanted: str
    help: str
    default: Any = None
    required: bool = False
    is_list: bool = False
    is_flag: bool = False
    paths_end: str | None = None

    def take(self, value: object, *, base: Path, as_text: bool = False) -> Any:
        """Return `value` as the command wants it, its paths below `base`.

        Args:
            as_text: numbers and flags come as text, as in an environment variable.

        Raises:
            ValueError: it is of another kind, or out of bounds; `str()` says what is wanted.
        """
        try:
            taken = msgspec.convert(value, self.kind, strict=not as_text, dec_hook=_make_path)
        except (msgspec.ValidationError, ValueError, TypeError):
            raise ValueError(f"{self.wanted} is wanted, not {_show(value)}") from None
        if isinstance(taken, float) and not math.isfinite(taken):
            raise ValueError(f"{self.wanted} is wanted, not {taken}")
        return _anchor(taken, base, self.paths_end)


class Section(msgspec.Struct, frozen=True):
    """The settings of one server; `name` is its command, with a dot for each blank."""

    name: str
    title: str
    settings: tuple[Setting, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """The way to it in the file."""
        return tuple(self.name.split("."))

    @property
    def prefix(self) -> str:
        """How the environment variables of this section begin."""
        return f"{PREFIX}_{self.name.replace('.', '_').upper()}_"

    def variable(self, setting: Setting) -> str:
        """Return the environment variable of a setting."""
        return self.prefix + setting.key.replace("-", "_").upper()

    def find(self, key: str) -> Setting | None:
        """Return the setting of that key."""
        return next((setting for setting in self.settings if setting.key == key), None)


def _make_path(kind: type, value: object) -> Path:
    if kind is Path and isinstance(value, str) and value and "\0" not in value:
        return Path(value)
    raise ValueError(value)


def _anchor(value: Any, base: Path, paths_end: str | None) -> Any:
    """Return a path below `base` where it is relative, and everything else as it is."""
    match value:
        case Path():
            return base / value.expanduser()
        case str() if paths_end is not None and value.endswith(paths_end):
            # Not a Path, which would drop the end of a text such as ``photos=/``.
            return os.path.join("" if base == Path() else base, os.path.expanduser(value))
        case list():
            return [_anchor(each, base, paths_end) for each in value]
        case _:
            return value


def _show(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    shown = f"{value!r}"
    return shown if len(shown) <= 80 else f"{shown[:79]}…"
