"""Sources of settings: command line, environment variables, and a TOML file.

A file has a table for each server. The first source that has a setting decides; without one its
default holds. Every fault is collected, so that a user can fix a file in one pass. A
`ServerConfiguration` is what a server was started with: it can be read again.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_origin

import msgspec

from specwire.runtime.kernel.settings import Section, Setting
from specwire.runtime.toml_file import TomlFileError, read_toml

Tables = Mapping[str, Any]
Keys = tuple[str | int, ...]
"""Path of a value in the file: ``("filemq", "serve", "folders", 0)``."""

_TOML_LIST = re.compile(r"""\s*\[\s*(?:["'\[\d-].*)?\]\s*\Z""", re.DOTALL)
"""A list of texts, numbers or lists. A key in Z85 may begin with a bracket, too."""


class Fault(msgspec.Struct, frozen=True):
    """One fault of a configuration.

    Attributes:
        keys: place in the file; empty for the file as a whole, and for other sources.
        reason: what is wrong and what to do, without the place.
        source: the environment variable or option, empty for the file.
    """

    keys: Keys
    reason: str
    source: str = ""

    def __str__(self) -> str:
        place = self.source or ".".join(map(str, self.keys))
        return f"{place}: {self.reason}" if place else self.reason


class ConfigurationError(Exception):
    """A configuration that cannot be used.

    Attributes:
        file: the file, None without one.
        faults: at least one.
    """

    def __init__(self, file: Path | None, faults: Sequence[Fault]) -> None:
        super().__init__("\n".join(str(fault) for fault in faults))
        self.file, self.faults = file, tuple(faults)


class Found(msgspec.Struct, frozen=True):
    """A value that a source sets: a variable, an option, or the file at `keys`."""

    value: Any
    source: str = ""
    keys: Keys = ()


class ServerConfiguration(msgspec.Struct):
    """The settings that a server was started with.

    Attributes:
        section: what can be set.
        sections: names of all sections that a file may have.
        file: None without one.
        found: what file and environment set when they were last read, by key.
        fixed: what the command line sets, by key.
    """

    section: Section
    sections: Collection[str]
    file: Path | None
    found: dict[str, Found]
    fixed: Mapping[str, Found] = {}

    def settings(self) -> Any:
        """Return the section's struct with the values that hold.

        Raises:
            ConfigurationError: a value is missing, or the server would refuse it.
        """
        held = {**self.found, **self.fixed}
        faults = [*find_faults(self.section, held)]
        for setting in self.section.missing(held):
            keys = (*self.section.keys, setting.key)
            faults.append(Fault(keys, "is required, in the file or on the command line"))
        if faults:
            raise ConfigurationError(self.file, faults)
        return self.section.build({key: found.value for key, found in held.items()})

    def read_again(self, environment: Mapping[str, str]) -> dict[str, Any]:
        """Return the changed settings by parameter; one that is no longer set has its default.

        Raises:
            ConfigurationError: the file cannot be used, or the server would refuse a changed value
                or the values together; nothing has changed then.
        """
        found = read_found(self.section, self.sections, self.file, environment)
        changed: dict[str, Found] = {}
        for setting in self.section.settings:
            default = Found(setting.default)
            old, new = (each.get(setting.key, default) for each in (self.found, found))
            if old.value != new.value and setting.key not in self.fixed:
                changed[setting.key] = new
        # Values that have not changed are in use, even if their folders or files have vanished.
        refused = find_refused(self.section, {key: changed[key] for key in changed if key in found})
        faults = (*refused, *find_conflicts(self.section, {**found, **self.fixed}))
        if faults:
            raise ConfigurationError(self.file, faults)
        self.found = found
        return {
            each.parameter: changed[each.key].value for each in self.section.settings if each.key in changed
        }


def read_found(
    section: Section, sections: Collection[str], file: Path | None, environment: Mapping[str, str]
) -> dict[str, Found]:
    """Return what file and environment set of a section, by key.

    Tables of other sections are not read; a table that is no section is a fault, as it was meant to
    be one.

    Raises:
        ConfigurationError: a name is unknown, or a value has another type or is out of bounds.
    """
    tables = read_tables(file) if file is not None else {}
    if strangers := tuple(find_strangers(tables, sections)):
        raise ConfigurationError(file, strangers)
    found, faults = read_section(section, tables, file=file, environment=environment)
    if faults:
        raise ConfigurationError(file, faults)
    return found


def read_tables(file: Path) -> Tables:
    """Return the tables of a file; raises ConfigurationError if it cannot be used."""
    try:
        return read_toml(file)
    except TomlFileError as error:
        raise ConfigurationError(file, (Fault((), f"it {error}"),)) from None


def find_strangers(tables: Tables, names: Iterable[str]) -> Iterator[Fault]:
    """Yield a fault for each table that is no section; `names` are those of all sections."""
    known = {tuple(name.split(".")): name for name in names}
    programs = list(dict.fromkeys(keys[0] for keys in known))
    for first, below in tables.items():
        if first not in programs:
            yield Fault((first,), f"unknown table{nearest(first, programs)}")
        elif not isinstance(below, dict):
            section = next(name for keys, name in known.items() if keys[0] == first)
            yield Fault((first,), f"expected a table such as [{section}], not a value")
        elif (first,) not in known:
            yield from _find_strangers_below(first, below, known)


def _find_strangers_below(first: str, below: Tables, known: Mapping[tuple[str, ...], str]) -> Iterator[Fault]:
    commands = [keys[1] for keys in known if keys[0] == first]
    for second, value in below.items():
        keys = (first, second)
        if keys not in known:
            yield Fault(keys, f"unknown table{nearest(second, commands)}")
        elif not isinstance(value, dict):
            yield Fault(keys, f"expected a table [{first}.{second}], not a value")


def find_faults(section: Section, found: Mapping[str, Found]) -> Iterator[Fault]:
    """Yield a fault for each value that the server would refuse, and for their combination."""
    yield from find_refused(section, found)
    yield from find_conflicts(section, found)


def find_refused(section: Section, found: Mapping[str, Found]) -> Iterator[Fault]:
    """Yield a fault for each value that the server would refuse."""
    for key, each in found.items():
        setting = section.find(key)
        if setting is None or setting.check is None:
            continue
        for value in each.value if setting.is_list else [each.value]:
            try:
                # A pipe can be read only once, by the server.
                if not (isinstance(value, Path) and value.is_fifo()):
                    setting.check(value)
            except (OSError, ValueError) as error:
                yield Fault(each.keys, str(error), each.source)


def find_conflicts(section: Section, found: Mapping[str, Found]) -> Iterator[Fault]:
    """Yield a fault if the struct refuses the values together.

    Its place is the section in the file, or the other sources of the values in conflict.
    """
    reason = _refusal(section, found)
    if reason is None:
        return
    involved = dict(found)
    for key in found:
        others = {other: each for other, each in involved.items() if other != key}
        if _refusal(section, others) == reason:
            involved = others
    sources = [each.source for each in involved.values() if each.source]
    yield Fault(() if sources else section.keys, reason, " and ".join(sources))


def _refusal(section: Section, found: Mapping[str, Found]) -> str | None:
    """Return why the struct refuses the values, None if it accepts them."""
    if section.struct is None:
        return None
    missing = {setting.key: None for setting in section.missing(found)}
    try:
        section.build(missing | {key: each.value for key, each in found.items()})
    except ValueError as error:
        return str(error)
    return None


def read_section(
    section: Section, tables: Tables, *, file: Path | None, environment: Mapping[str, str]
) -> tuple[dict[str, Found], list[Fault]]:
    """Return the usable values of a section in file and environment, by key, and the faults."""
    reader = _Reader(section)
    below: Any = tables
    for key in section.keys:
        below = below.get(key, {}) if isinstance(below, dict) else {}
    reader.read_table(below if isinstance(below, dict) else {}, Path() if file is None else file.parent)
    in_file, reader.found = reader.found, {}
    reader.read_environment(environment)
    return in_file | reader.found, reader.faults


def read_command_line(
    section: Section, options: Mapping[str, Any], assignments: Iterable[str]
) -> dict[str, Found]:
    """Return what a command line sets, by key.

    Args:
        options: values of options and arguments, by key.
        assignments: ``KEY=VALUE`` of each ``--set``.

    Raises:
        ConfigurationError: a key is unknown or set twice, or a value has another type or is out of
        bounds.
    """
    reader = _Reader(section)
    for setting in section.settings:
        if setting.key in options:
            source = setting.value if setting.argument else f"--{setting.option}"
            reader.add(setting, options[setting.key], Fault((), "", source), Path(), as_text=True)
    for word in assignments:
        name, equals, text = word.partition("=")
        known = section.find(name)
        if not equals:
            reader.faults.append(Fault((), f"expected KEY=VALUE, not {word!r}", "--set"))
        elif known is None:
            reader.faults.append(Fault((), f"unknown setting{_nearest_key(name, section)}", f"--set {name}"))
        else:
            reader.add(known, text, Fault((), "", f"--set {known.key}"), Path(), as_text=True)
    if reader.faults:
        raise ConfigurationError(None, reader.faults)
    return reader.found


class _Reader:
    """Values and faults of one source of a section."""

    def __init__(self, section: Section) -> None:
        self._section = section
        self.found: dict[str, Found] = {}
        self.faults: list[Fault] = []

    def read_table(self, table: Tables, base: Path, group: str = "") -> None:
        """Read a table of the file and its groups; relative paths begin at `base`."""
        base = base.absolute()
        for key, value in table.items():
            name = f"{group}.{key}" if group else key
            keys = (*self._section.keys, *([group] if group else []), key)
            setting = self._section.find(name)
            if isinstance(value, dict) and not group and self._section.has_group(name):
                self.read_table(value, base, name)
            elif setting is None:
                self.faults.append(Fault(keys, f"unknown setting{_nearest_key(name, self._section)}"))
            else:
                self.add(setting, value, Fault(keys, ""), base)

    def read_environment(self, environment: Mapping[str, str]) -> None:
        """Read the variables of the section."""
        known = self._section.variables()
        for variable, text in environment.items():
            if not variable.startswith(self._section.prefix):
                continue
            setting = known.get(variable)
            if setting is None:
                self.faults.append(Fault((), f"unknown setting{nearest(variable, known)}", variable))
            else:
                self.add(setting, text, Fault((), "", variable), Path(), as_text=True)

    def add(self, setting: Setting, value: Any, place: Fault, base: Path, *, as_text: bool = False) -> None:
        """Convert a value, or note a fault at `place`."""
        try:
            if setting.key in self.found:
                raise ValueError(f"{setting.key} is set twice")
            if as_text and isinstance(value, str):
                value = _parse(value, setting)
            converted = setting.convert(value, base=base, as_text=as_text)
            self.found[setting.key] = Found(converted, place.source, place.keys)
        except ValueError as error:
            self.faults.append(msgspec.structs.replace(place, reason=str(error)))


def _parse(text: str, setting: Setting) -> Any:
    """Return the values of a list or table that a text states; raises ValueError."""
    if get_origin(setting.kind) in (dict, Mapping) or (setting.is_list and _TOML_LIST.match(text)):
        try:
            return tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            raise ValueError(f"expected {setting.expected} as in TOML, not {text!r}") from None
    if setting.is_list:
        return [word.strip() for word in text.split(",") if word.strip()]
    return text


def _nearest_key(name: str, section: Section) -> str:
    return nearest(name, [setting.key for setting in section.settings])


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the end of a sentence about an unknown name: the closest known one, or all of them."""
    names = list(known)
    close = get_close_matches(name, names, n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; expected one of {', '.join(names)}"
