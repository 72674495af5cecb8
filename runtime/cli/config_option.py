"""`--config` and shared options of servers whose settings are parameters of their command.

The callback of the option reads the file and the environment before any other option is parsed.
What they set becomes the defaults of the command, so the command line takes precedence.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import typer

from specwire.runtime.cli.config_faults import fail_with
from specwire.runtime.cli.config_sections import SECTIONS, load_section
from specwire.runtime.kernel.settings import describe_settings
from specwire.runtime.kernel.settings_sources import (
    ConfigurationError,
    Found,
    ServerConfiguration,
    find_faults,
    read_found,
)

FILE_VARIABLE = "SPECWIRE_CONFIG"
CONFIG_HELP = (
    f"Read settings from this file; options take precedence. The variable {FILE_VARIABLE} may name it, too. "
    "`specwire config example` writes one."
)
_MADE = "specwire.configured"


def config_option(section: str) -> Any:
    """Return the option for the server of that section."""

    def take(context: typer.Context, file: Path | None) -> Path | None:
        if context.resilient_parsing:
            return file
        configuration = configure(section, file)
        context.meta[_MADE] = configuration
        by_key = {setting.key: setting.parameter for setting in configuration.section.settings}
        values = {by_key[key]: found.value for key, found in configuration.found.items()}
        context.default_map = {**(context.default_map or {}), **values}
        return file

    return typer.Option(
        "--config",
        metavar="FILE",
        envvar=FILE_VARIABLE,
        show_envvar=False,
        is_eager=True,
        callback=take,
        help=CONFIG_HELP,
        show_default=False,
    )


def option_from(struct: type[msgspec.Struct], field: str, spelling: str) -> Any:
    """Return an option with the help of a field of a settings struct."""
    setting = describe_settings("", struct).find(field)
    assert setting is not None, f"{struct.__name__} has no field {field}"
    return typer.Option(spelling, metavar=setting.value or None, help=setting.help, show_default=False)


def configured_in(context: typer.Context) -> ServerConfiguration:
    """Return the configuration that the command of `context` was started with.

    Values that the server would refuse end the command, unless the command line has replaced them.
    """
    configuration: ServerConfiguration = context.meta[_MADE]
    fixed = {
        setting.key: Found(context.params[setting.parameter])
        for setting in configuration.section.settings
        if is_given(context, setting.parameter)
    }
    held = {key: found for key, found in configuration.found.items() if key not in fixed}
    if faults := tuple(find_faults(configuration.section, held)):
        fail_with(ConfigurationError(configuration.file, faults))
    return msgspec.structs.replace(configuration, fixed=fixed)


def is_given(context: typer.Context, parameter: str) -> bool:
    """Return whether the command line states a parameter."""
    source = context.get_parameter_source(parameter)
    return source is not None and source.name == "COMMANDLINE"


def configure(name: str, file: Path | None) -> ServerConfiguration:
    """Return what is set of a section; a configuration that cannot be used ends the command."""
    section = load_section(name)
    try:
        return ServerConfiguration(section, SECTIONS, file, read_found(section, SECTIONS, file, os.environ))
    except ConfigurationError as error:
        fail_with(error)
