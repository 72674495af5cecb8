"""Faults of a configuration as text, with their lines in the file."""

from __future__ import annotations

import tomllib
from typing import NoReturn

from specwire.runtime.cli.console import fail
from specwire.runtime.kernel.settings_sources import ConfigurationError, Fault, Keys
from specwire.runtime.log.text import show


def fail_with(error: ConfigurationError) -> NoReturn:
    """End the command with all faults."""
    fail("\n          ".join(describe_faults(error)))


def describe_faults(error: ConfigurationError) -> list[str]:
    """Return a line for each fault, in the order of the file.

    The form is ``FILE:LINE: KEY: REASON``, ``VARIABLE: REASON`` or ``OPTION: REASON``.
    """
    lines = _lines_of(error)
    ordered = sorted(error.faults, key=lambda fault: (bool(fault.source), _line(fault, lines)))
    return [show(_describe(fault, error, lines)) for fault in ordered]


def _describe(fault: Fault, error: ConfigurationError, lines: dict[Keys, int]) -> str:
    if fault.source or error.file is None:
        return str(fault)
    line = _line(fault, lines)
    return f"{error.file}:{line}: {fault}" if line else f"{error.file}: {fault}"


def _line(fault: Fault, lines: dict[Keys, int]) -> int:
    """Return the line of a fault from 1; 0 where there is none.

    ``[a.b]`` names the table ``a`` without being it, and what is inside a value has the line of the
    value.
    """
    for length in range(len(fault.keys), 0, -1):
        keys = fault.keys[:length]
        if found := [line for place, line in lines.items() if place[:length] == keys]:
            return min(found)
    return 0


def _lines_of(error: ConfigurationError) -> dict[Keys, int]:
    """Return the line of each key; the file may have changed meanwhile, and its lines with it."""
    # What is no regular file, such as a pipe, has been read to its end.
    if error.file is None or not error.file.is_file() or not any(fault.keys for fault in error.faults):
        return {}
    from specwire.generator.profile.toml_places import find_places

    try:
        text = error.file.read_text(encoding="utf-8").replace("\r\n", "\n")
        tomllib.loads(text)
    except (OSError, ValueError, RecursionError):
        return {}
    return {keys: text.count("\n", 0, place.start) + 1 for keys, place in find_places(text).items()}
