"""`specwire config`: check the configuration of servers, show it, and write an example."""

from __future__ import annotations

import json
import os
import textwrap
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from specwire.runtime.cli.config_faults import describe_faults, fail_with
from specwire.runtime.cli.config_option import FILE_VARIABLE, configure
from specwire.runtime.cli.config_sections import SECTIONS, check_section, load_section
from specwire.runtime.cli.config_units import systemd
from specwire.runtime.cli.console import new_table, output, print_json, wide_output
from specwire.runtime.kernel.settings import Section, Setting, show_value
from specwire.runtime.kernel.settings_sources import (
    ConfigurationError,
    Fault,
    ServerConfiguration,
    Tables,
    find_conflicts,
    find_refused,
    find_strangers,
    read_section,
    read_tables,
)

EXIT_STATUSES = "Exit status: 0; 2 for a configuration that cannot be used, and for usage."

app = typer.Typer(
    help="Check the settings of servers, print them, write an example or a systemd unit.",
    no_args_is_help=True,
)

SectionArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="SECTION…",
        help=f"Servers: {', '.join(SECTIONS)}; default: those in the file, or all.",
        show_default=False,
    ),
]

COLUMNS = 100
"""Width of comments in an example."""

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


@app.callback()
def config() -> None:
    """Check the settings of servers, print them, write an example or a systemd unit."""


@app.command(epilog=EXIT_STATUSES)
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The configuration.", show_default=False)],
    as_json: JsonOption = False,
) -> None:
    """Report all faults of a file, each with its line and key."""
    faults: list[Fault] = []
    sections: list[str] = []
    try:
        tables = read_tables(file)
        faults += find_strangers(tables, SECTIONS)
        sections = _present(tables)
        for name in sections:
            faults += _faults_in(name, tables, file)
        if faults:
            raise ConfigurationError(file, faults)
    except ConfigurationError as error:
        if not as_json:
            fail_with(error)
        print_json({"file": str(file), "sections": sections, "faults": describe_faults(error)})
        raise typer.Exit(2) from None
    if as_json:
        print_json({"file": str(file), "sections": sections, "faults": []})
        return
    told = ", ".join(sections) or "nothing: every server runs with its defaults"
    output().print(f"{file} sets {told}", markup=False, soft_wrap=True)


@app.command(epilog=EXIT_STATUSES)
def show(
    sections: SectionArgument = None,
    file: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", envvar=FILE_VARIABLE, help="The file.", show_default=False),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print the settings of a server that is started here and now, and the source of each."""
    names = _wanted(sections) or _present(_tables_of(file)) or list(SECTIONS)
    held = [_describe(configure(name, file)) for name in names]
    if as_json:
        print_json(held)
        return
    from rich.markup import escape

    table = new_table("section", "key", "value", "from")
    for section in held:
        for row in section["settings"]:
            value = "" if row["value"] in (None, []) else show_value(row["value"])
            table.add_row(section["section"], row["key"], escape(value), escape(row["from"]))
    wide_output().print(table)


@app.command(epilog="Exit status: 0; 2 for usage.")
def example(sections: SectionArgument = None) -> None:
    """Print a configuration with every key as a comment: its meaning and its default."""
    names = _wanted(sections) or list(SECTIONS)
    output().print(
        "\n".join(example_of(load_section(name)) for name in names), markup=False, soft_wrap=True, end=""
    )


app.command(epilog="Exit status: 0; 2 for usage.")(systemd)


def _wanted(sections: list[str] | None) -> list[str]:
    for name in sections or ():
        check_section(name)
    return list(dict.fromkeys(sections or ()))


def _present(tables: Tables) -> list[str]:
    """Return the sections that a file has."""

    def has(name: str) -> bool:
        below: Any = tables
        for key in name.split("."):
            below = below.get(key) if isinstance(below, dict) else None
        return isinstance(below, dict)

    return [name for name in SECTIONS if has(name)]


def _tables_of(file: Path | None) -> Tables:
    try:
        return {} if file is None else read_tables(file)
    except ConfigurationError as error:
        fail_with(error)


def _faults_in(name: str, tables: Tables, file: Path) -> tuple[Fault, ...]:
    """Return what is wrong with a section of the file; the environment is not the file's."""
    section = load_section(name)
    found, faults = read_section(section, tables, file=file, environment={})
    # A value that cannot be read is missing here, which may look like a conflict of the others.
    return (*faults, *find_refused(section, found), *(() if faults else find_conflicts(section, found)))


def _describe(configured: ServerConfiguration) -> dict[str, Any]:
    rows = []
    for setting in configured.section.settings:
        found = configured.found.get(setting.key)
        source = (found.source or str(configured.file)) if found else ""
        rows.append(
            {
                "key": setting.key,
                "value": _json_value(found.value if found else setting.default),
                "from": source or ("(required)" if setting.required else "default"),
                "variable": configured.section.variable(setting),
            }
        )
    return {"section": configured.section.name, "settings": rows}


def _json_value(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_json_value(each) for each in value]
    value = getattr(value, "value", value)
    return os.fspath(value) if isinstance(value, Path) else value


def example_of(section: Section) -> str:
    """Return the text of a section with all keys as comments, which is a valid file."""
    head = f"# `specwire {section.name.replace('.', ' ')}`: {section.title}\n[{section.name}]\n"
    return head + "\n".join(map(_lines_of, section.settings))


def _lines_of(setting: Setting) -> str:
    words = setting.help or setting.expected
    if setting.required:
        words = f"{words} Required, here or on the command line."
    if setting.reload:
        words = f"{words} Changes at SIGHUP."
    comment = textwrap.fill(
        words, COLUMNS, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False
    )
    line = f"{setting.key} = {_toml(_value_of(setting))}"
    return f"{comment}\n#{line}\n"


def _value_of(setting: Setting) -> Any:
    """Return the default, or a value of the right type if there is none."""
    if setting.default is not None:
        return setting.default.value if isinstance(setting.default, Enum) else setting.default
    for sample in ("…", 1, True):
        value = [sample] if setting.is_list else sample
        try:
            setting.convert(value, base=Path())
        except ValueError:
            continue
        return value
    raise AssertionError(f"no sample fits {setting.key}: {setting.expected}")


def _toml(value: Any) -> str:
    """Return a value as TOML; its texts, numbers and lists are written as in JSON."""
    return json.dumps(value, ensure_ascii=False, default=str)
