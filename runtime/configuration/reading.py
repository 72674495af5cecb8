"""Read a configuration: a TOML file with a table for each server, and environment variables over it.

A setting is taken from the first of these that has it: the command line (which is the caller's), the environment, the file,
its default. Every fault is collected, so that a user mends a file once.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from specwire.runtime.configuration.faults import ConfigurationError, Fault, nearest
from specwire.runtime.configuration.settings import Section
from specwire.runtime.toml_file import TomlFileError, read_toml

Tables = Mapping[str, Any]


class Found(msgspec.Struct, frozen=True):
    """A value that somebody set, and where: `variable` is empty where it was in the file."""

    value: Any
    variable: str = ""


def read_tables(file: Path) -> Tables:
    """Return what a file says; raises ConfigurationError where it cannot be read or is no TOML."""
    try:
        return read_toml(file)
    except TomlFileError as error:
        raise _unusable(file, f"it {error}") from None


def _unusable(file: Path, reason: str) -> ConfigurationError:
    return ConfigurationError(file, (Fault((), reason),))


def find_strangers(tables: Tables, names: Iterable[str]) -> Iterator[Fault]:
    """Yield a fault for each table that is no section; `names` are those of all sections."""
    known = {tuple(name.split(".")): name for name in names}
    programs = list(dict.fromkeys(keys[0] for keys in known))
    for first, below in tables.items():
        if first not in programs:
            yield Fault((first,), f"{first} is not known{nearest(first, programs)}")
        elif not isinstance(below, dict):
            section = next(name for keys, name in known.items() if keys[0] == first)
            yield Fault((first,), f"{first} is not a value: write a table such as [{section}]")
        elif (first,) not in known:
            yield from _find_strangers_below(first, below, known)


def _find_strangers_below(first: str, below: Tables, known: Mapping[tuple[str, ...], str]) -> Iterator[Fault]:
    commands = [keys[1] for keys in known if keys[0] == first]
    for second, value in below.items():
        keys, name = (first, second), f"{first}.{second}"
        if keys not in known:
            yield Fault(keys, f"{name} is not known{nearest(second, commands)}")
        elif not isinstance(value, dict):
            yield Fault(keys, f"{name} is not a value: write a table [{name}]")


def read_section(
    section: Section, tables: Tables, *, file: Path | None, environment: Mapping[str, str]
) -> dict[str, Found]:
    """Return what is set of a section, by key: in the environment, or else in the file.

    Raises:
        ConfigurationError: a key or a variable is not known, or a value cannot be used.
    """
    found, faults = look_at_section(section, tables, file=file, environment=environment)
    if faults:
        raise ConfigurationError(file, faults)
    return found


def look_at_section(
    section: Section, tables: Tables, *, file: Path | None, environment: Mapping[str, str]
) -> tuple[dict[str, Found], list[Fault]]:
    """Return what is set of a section and can be used, by key, and what is wrong with the rest."""
    faults: list[Fault] = []
    found = _read_file(section, tables, Path() if file is None else file.absolute().parent, faults)
    found |= _read_environment(section, environment, faults)
    return found, faults


def _read_file(section: Section, tables: Tables, base: Path, faults: list[Fault]) -> dict[str, Found]:
    below: Any = tables
    for key in section.keys:
        below = below.get(key, {}) if isinstance(below, dict) else {}
    found: dict[str, Found] = {}
    for key, value in below.items() if isinstance(below, dict) else ():
        keys = (*section.keys, key)
        setting = section.find(key)
        if setting is None:
            known = (each.key for each in section.settings)
            faults.append(Fault(keys, f"{'.'.join(keys)} is not known{nearest(key, known)}"))
            continue
        try:
            found[key] = Found(setting.take(value, base=base))
        except ValueError as error:
            faults.append(Fault(keys, f"{'.'.join(keys)}: {error}"))
    return found


def _read_environment(
    section: Section, environment: Mapping[str, str], faults: list[Fault]
) -> dict[str, Found]:
    known = {section.variable(setting): setting for setting in section.settings}
    found: dict[str, Found] = {}
    for variable, text in environment.items():
        if not variable.startswith(section.prefix):
            continue
        setting = known.get(variable)
        if setting is None:
            faults.append(Fault((), f"there is no such setting{nearest(variable, known)}", variable))
            continue
        try:
            value = _split(text) if setting.is_list else text
            taken = setting.take(value, base=Path(), as_text=True)
            found[setting.key] = Found(taken, variable)
        except ValueError as error:
            faults.append(Fault((), str(error), variable))
    return found


def _split(text: str) -> list[object]:
    """Return the values in a variable: a TOML array, or texts with commas between them; raises ValueError."""
    if not text.startswith("["):
        return [word.strip() for word in text.split(",") if word.strip()]
    try:
        return list(tomllib.loads(f"values = {text}")["values"])
    except tomllib.TOMLDecodeError:
        raise ValueError(
            f"a TOML array, or texts with commas between them, is wanted, not {text!r}"
        ) from None
