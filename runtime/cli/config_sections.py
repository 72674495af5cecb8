"""Sections of a configuration: from a settings struct, or from the parameters of a command.

The commands of Flux, NORFAB, proxy, bridge and pipeline declare options as parameters, which typer
reads, too. Each option is a key.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec
from typer.models import OptionInfo, ParameterInfo

from specwire.runtime.cli.config_checks import CHECKS, EVERYWHERE
from specwire.runtime.cli.console import fail, meant
from specwire.runtime.kernel.settings import Section, Setting, complete, describe_settings

SECTIONS: Mapping[str, str] = {
    "filemq.serve": "specwire.runtime.filemq.settings:ServeSettings",
    "filemq.subscribe": "specwire.runtime.filemq.settings:SubscribeSettings",
    "flux.broker": "specwire.runtime.cli.flux_broker:broker",
    "flux.start": "specwire.runtime.cli.flux_start:start",
    "zre.join": "specwire.runtime.cli.zre:JoinSettings",
    "norfab.broker": "specwire.runtime.cli.norfab_broker:broker",
    "norfab.worker": "specwire.runtime.cli.norfab_worker:worker",
    "capture.proxy": "specwire.runtime.cli.capture_proxy:proxy",
    "bridge": "specwire.runtime.cli.bridge:command",
    "pipeline.watch": "specwire.runtime.cli.pipeline_watch:watch",
}
"""Settings struct or command of each section."""

OMITTED = frozenset({"config", "until_eof"})
"""Parameters that no file can have: the file itself, and what a parent process tells its child."""

WRITTEN = frozenset({"capture", "folder", "out"})
"""Settings that name a folder to write to."""


def check_section(name: str) -> None:
    """End the command if there is no section of that name."""
    if name not in SECTIONS:
        fail(f"there is no section {name!r}{meant(name, SECTIONS)}; there are {', '.join(SECTIONS)}")


def load_section(name: str) -> Section:
    """Return the section of that name, which is in `SECTIONS`; imports what declares it."""
    module, _, member = SECTIONS[name].partition(":")
    declared = getattr(import_module(module), member)
    if isinstance(declared, type):
        return describe_settings(name, declared)
    return read_section_of(name, declared)


def read_section_of(name: str, command: Callable[..., None]) -> Section:
    """Return the section that `command` declares by its parameters."""
    hints = get_type_hints(command, include_extras=True)
    settings = []
    for parameter in inspect.signature(command).parameters.values():
        declared = _declaration(hints[parameter.name])
        if declared is None or getattr(declared, "hidden", False) or parameter.name in OMITTED:
            continue
        settings.append(_read_setting(name, parameter, hints[parameter.name], declared))
    title = (inspect.getdoc(command) or "").partition("\n\n")[0].replace("\n", " ")
    return Section(name, title, tuple(settings))


def _declaration(hint: Any) -> ParameterInfo | None:
    extras = hint.__metadata__ if get_origin(hint) is Annotated else ()
    return next((extra for extra in extras if isinstance(extra, ParameterInfo)), None)


def _read_setting(section: str, parameter: inspect.Parameter, hint: Any, declared: ParameterInfo) -> Setting:
    key = _key_of(parameter.name, declared)
    required = parameter.default is inspect.Parameter.empty
    setting = Setting(
        help=declared.help or "",
        writes=key in WRITTEN,
        check=CHECKS.get((section, key)) or EVERYWHERE.get(key),
    )
    return complete(
        setting,
        Annotated[get_args(hint)[0], msgspec.Meta(ge=declared.min, le=declared.max)],
        key=key,
        parameter=parameter.name,
        default=None if required else parameter.default,
        required=required,
    )


def _key_of(name: str, declared: ParameterInfo) -> str:
    """Return the long name of the option, or the name of the argument."""
    if isinstance(declared, OptionInfo):
        # Where the option is an annotation, typer keeps the first of its names as if it were a default.
        for declaration in (declared.default, *(declared.param_decls or ())):
            if isinstance(declaration, str) and declaration.startswith("--"):
                return declaration.partition("/")[0].removeprefix("--")
    return name.replace("_", "-")
