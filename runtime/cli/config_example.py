"""A configuration to begin with: every key of a section, what it means, and what it is by default."""

from __future__ import annotations

import json
import textwrap
from enum import Enum
from pathlib import Path
from typing import Any

from specwire.runtime.configuration.settings import Section, Setting

COLUMNS = 100
_NOWHERE = Path()


def example_of(section: Section) -> str:
    """Return the text of a section whose keys are all commented out, so that it can be used as it is."""
    head = f"# `specwire {section.name.replace('.', ' ')}`: {section.title}\n[{section.name}]\n"
    return head + "\n".join(map(_lines_of, section.settings))


def _lines_of(setting: Setting) -> str:
    words = setting.help or setting.wanted
    if setting.required:
        words = f"{words} Has to be said, here or on the command line."
    comment = textwrap.fill(
        words, COLUMNS, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False
    )
    line = f"{setting.key} = {_toml(_value_of(setting))}"
    return f"{comment}\n#{line}\n"


def _value_of(setting: Setting) -> Any:
    """Return the default, or something of the right kind where there is none."""
    if setting.default is not None:
        return setting.default.value if isinstance(setting.default, Enum) else setting.default
    for sample in ("…", 1, True):
        value = [sample] if setting.is_list else sample
        try:
            setting.take(value, base=_NOWHERE)
        except ValueError:
            continue
        return value
    raise AssertionError(f"no sample fits {setting.key}: {setting.wanted}")


def _toml(value: Any) -> str:
    """Return a value as TOML, whose texts, numbers and lists of these read as those of JSON."""
    return json.dumps(value, ensure_ascii=False, default=str)
