"""Commands whose options are made from a settings struct.

Every setting that is not rare is an option or an argument. ``--set KEY=VALUE`` sets any of them,
and ``--config`` names a file. The command converts and checks all values in the same way, whichever
source they come from.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import typer

from specwire.runtime.cli.config_faults import fail_with
from specwire.runtime.cli.config_option import CONFIG_HELP, FILE_VARIABLE, is_given
from specwire.runtime.cli.config_sections import SECTIONS
from specwire.runtime.cli.usage import UsageError
from specwire.runtime.kernel.settings import Section, Setting
from specwire.runtime.kernel.settings_sources import (
    ConfigurationError,
    ServerConfiguration,
    read_command_line,
    read_found,
)


def settings_command(
    section: Section, run: Callable[[Any, ServerConfiguration], None]
) -> Callable[..., None]:
    """Return the command of a section, which calls ``run(settings, configuration)``."""

    def command(context: typer.Context, **values: Any) -> None:
        configuration = _read(section, context, values)
        _require(context, configuration)
        try:
            settings = configuration.settings()
        except ConfigurationError as error:
            fail_with(error)
        run(settings, configuration)

    parameters = [
        inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context),
        *_parameters(section),
    ]
    command.__doc__ = section.title
    command.__dict__["section"] = section
    command.__dict__["__signature__"] = inspect.Signature(parameters)
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    return command


def _parameters(section: Section) -> Iterator[inspect.Parameter]:
    for setting in section.settings:
        if not setting.rare:
            yield _keyword(_name_of(setting), _hint_of(setting), setting.default)
    keys = [setting.key for setting in section.settings]
    assignment = typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Set any setting, also one without an option; repeatable. "
        f"`specwire config example {section.name}` lists all.",
        autocompletion=lambda incomplete: [f"{key}=" for key in keys if key.startswith(incomplete)],
    )
    yield _keyword("assignments", Annotated[list[str] | None, assignment], None)
    config = typer.Option(
        "--config", metavar="FILE", envvar=FILE_VARIABLE, show_envvar=False, help=CONFIG_HELP
    )
    yield _keyword("config", Annotated[Path | None, config], None)


def _keyword(name: str, hint: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def _name_of(setting: Setting) -> str:
    return setting.option.replace("-", "_")


def _hint_of(setting: Setting) -> Any:
    """Return the annotation of a parameter.

    Typer completes choices and paths; `Setting.convert` checks all values.
    """
    plain = get_args(setting.kind)[0] if get_origin(setting.kind) is Annotated else setting.kind
    kind: Any = plain if plain in (bool, Path) or setting.expected.startswith("one of ") else str
    kind = list[str] if setting.is_list else kind
    common: dict[str, Any] = {
        "help": f"{setting.help} Required, here or in the file." if setting.required else setting.help,
        "metavar": setting.value or None,
        "show_default": setting.default not in (None, (), False),
    }
    if setting.argument:
        return Annotated[kind | None, typer.Argument(**common)]
    if setting.is_flag and not setting.default:
        return Annotated[bool, typer.Option(f"--{setting.option}", **common)]
    return Annotated[kind | None, typer.Option(**common)]


def _read(section: Section, context: typer.Context, values: Mapping[str, Any]) -> ServerConfiguration:
    file: Path | None = values["config"]
    options = {
        setting.key: _text_of(values[_name_of(setting)])
        for setting in section.settings
        if not setting.rare and is_given(context, _name_of(setting))
    }
    try:
        fixed = read_command_line(section, options, values["assignments"] or ())
        found = read_found(section, SECTIONS, file, os.environ)
    except ConfigurationError as error:
        fail_with(error)
    return ServerConfiguration(section, SECTIONS, file, found, fixed)


def _text_of(value: Any) -> Any:
    match value:
        case Enum():
            return value.value
        case Path():
            return os.fspath(value)
        case _:
            return value


def _require(context: typer.Context, configuration: ServerConfiguration) -> None:
    """Raise a usage error for settings without a value."""
    held = {**configuration.found, **configuration.fixed}
    if missing := configuration.section.missing(held):
        names = [each.value if each.argument else f"--{each.option}" for each in missing]
        raise UsageError(f"missing {' and '.join(names)}", context)
