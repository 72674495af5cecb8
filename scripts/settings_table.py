"""The tables of settings in the pages of `SECTIONS`, written from the settings structs.

``python scripts/settings_table.py docs/reference/filemq.md`` writes what stands between the two
markers; with ``--check`` it compares, prints the difference and ends with status 1 if there is one.
"""

from __future__ import annotations

import json
import sys
from enum import Enum
from pathlib import Path
from typing import Any

from marked import write_or_check
from specwire.runtime.cli.config_sections import load_section
from specwire.runtime.kernel.settings import Section, Setting

SECTIONS = {"filemq": ("filemq.serve", "filemq.subscribe"), "zre": ("zre.join",)}
"""Sections whose tables each page of docs/reference has."""

UNITS = ("DAYS", "OCTETS", "SECONDS")


def write_tables(page: str) -> str:
    """Return a table for each section of a page: its settings in the order of ``config example``."""
    return "\n".join(f"`[{name}]`: {_table(load_section(name))}" for name in SECTIONS[page])


def _table(section: Section) -> str:
    head = ["| setting | option | default | meaning |", "|---|---|---|---|"]
    rows = [f"{section.title}\n", *head, *map(_row, section.settings)]
    return "".join(f"{row}\n" for row in rows)


def _row(setting: Setting) -> str:
    meaning = f"{setting.help} Changes at SIGHUP." if setting.reload else setting.help
    cells = (f"`{setting.key}`", _option(setting), _default(setting), meaning)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _option(setting: Setting) -> str:
    if setting.rare:
        return ""
    value = setting.value
    if isinstance(setting.default, Enum):
        value = "|".join(str(each.value) for each in type(setting.default))
    return f"`{value if setting.argument else f'--{setting.option} {value}'.rstrip()}`"


def _default(setting: Setting) -> str:
    value: Any = setting.default.value if isinstance(setting.default, Enum) else setting.default
    if setting.required:
        return "required"
    if value in (None, ()):
        return ""
    unit = f" {setting.value.lower()}" if setting.value in UNITS else ""
    return f"`{json.dumps(value)}`{unit}"


def main(arguments: list[str]) -> int:
    """Write or compare the page that is named; return the exit status."""
    (page,) = (Path(argument).stem for argument in arguments if argument != "--check")
    return write_or_check(arguments, "settings", lambda: write_tables(page))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
