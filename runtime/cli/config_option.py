"""The option `--config FILE` of every server, and what it stands for while the server runs.

The callback of the option reads the file and the environment before any other option is looked at, and hands what
they set to the command as its defaults: what is said on the command line holds before them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import typer

from specwire.runtime.cli.config_checks import find_faults
from specwire.runtime.cli.config_faults import fail_with
from specwire.runtime.cli.config_sections import SECTIONS, load_section
from specwire.runtime.configuration.faults import ConfigurationError
from specwire.runtime.configuration.reading import Found, find_strangers, read_section, read_tables
from specwire.runtime.configuration.settings import Section

FILE_VARIABLE = "SPECWIRE_CONFIG"
_MADE = "specwire.configured"

_HELP = f"""Take settings from this file; options hold before it. The variable {FILE_VARIABLE} names one, too, and
`specwire config example` shows what can be in it."""


class Configured(msgspec.Struct):
    """A server's configuration, which can be read again.

    Attributes:
        section: what can be set.
        file: where, None where there is no file.
        found: what was set when it was last read, by key.
        said: parameters that the command line has settled.
    """

    section: Section
    file: Path | None
    found: dict[str, Found]
    said: frozenset[str] = frozenset()

    def read_again(self) -> dict[str, Any]:
        """Return what is set differently now, by the command's parameter; what is set no more has its default.

        Raises:
            ConfigurationError: it cannot be used; nothing has changed then.
        """
        found = read_found(self.section, self.file, os.environ)
        before, self.found = self.found, found
        changed = {}
        for setting in self.section.settings:
            old, new = (each.get(setting.key, Found(setting.default)).value for each in (before, found))
            if old != new and setting.parameter not in self.said:
                changed[setting.parameter] = new
        return changed


def config_option(section: str) -> Any:
    """Return the option for the server of that section."""

    def take(context: typer.Context, file: Path | None) -> Path | None:
        if context.resilient_parsing:
            return file
        configured = configure(section, file)
        context.meta[_MADE] = configured
        by_key = {setting.key: setting.parameter for setting in configured.section.settings}
        values = {by_key[key]: found.value for key, found in configured.found.items()}
        context.default_map = {**(context.default_map or {}), **values}
        return file

    return typer.Option(
        "--config",
        metavar="FILE",
        envvar=FILE_VARIABLE,
        show_envvar=False,
        is_eager=True,
        callback=take,
        help=" ".join(_HELP.split()),
        show_default=False,
    )


def configured_in(context: typer.Context) -> Configured:
    """Return the configuration that the command of `context` was started with.

    What the server would refuse ends the command here, where it is known whose word it is; what the command line has said
    instead is no fault of the file.
    """
    configured: Configured = context.meta[_MADE]
    said = frozenset(name for name in context.params if _is_said(context, name))
    settings = {setting.key: setting.parameter for setting in configured.section.settings}
    held = {key: found for key, found in configured.found.items() if settings[key] not in said}
    if faults := tuple(find_faults(configured.section, held)):
        fail_with(ConfigurationError(configured.file, faults))
    return msgspec.structs.replace(configured, said=said)


def _is_said(context: typer.Context, parameter: str) -> bool:
    source = context.get_parameter_source(parameter)
    return source is not None and source.name == "COMMANDLINE"


def configure(name: str, file: Path | None) -> Configured:
    """Return what is set of a section; a configuration that cannot be used ends the command."""
    section = load_section(name)
    try:
        return Configured(section, file, read_found(section, file, os.environ))
    except ConfigurationError as error:
        fail_with(error)


def read_found(section: Section, file: Path | None, environment: Mapping[str, str]) -> dict[str, Found]:
    """Return what is set of a section, by key; raises ConfigurationError.

    Other sections of the file are other servers'; a table that is none of them is a fault here, too, as it was meant to
    be one.
    """
    tables = read_tables(file) if file is not None else {}
    if strangers := tuple(find_strangers(tables, SECTIONS)):
        raise ConfigurationError(file, strangers)
    return read_section(section, tables, file=file, environment=environment)
