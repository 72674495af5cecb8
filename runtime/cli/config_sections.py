"""The sections of a configuration, made from the commands that run a server: each option is a key.

What an option is called, takes, means and is by default is read from the command's own signature, where typer reads it
too, so that the two cannot say different things.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from enum import Enum
from importlib import import_module
from pathlib import Path
from types import GenericAlias, NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from typer.models import OptionInfo, ParameterInfo

from specwire.runtime.configuration.settings import Section, Setting

SECTIONS: Mapping[str, str] = {
    "filemq.serve": "specwire.runtime.cli.filemq_serve:serve",
    "filemq.subscribe": "specwire.runtime.cli.filemq_subscribe:subscribe",
    "flux.broker": "specwire.runtime.cli.flux_broker:broker",
    "flux.start": "specwire.runtime.cli.flux_start:start",
    "norfab.broker": "specwire.runtime.cli.norfab_broker:broker",
    "norfab.worker": "specwire.runtime.cli.norfab_worker:worker",
    "capture.proxy": "specwire.runtime.cli.capture_proxy:proxy",
    "bridge": "specwire.runtime.cli.bridge:command",
    "pipeline.watch": "specwire.runtime.cli.pipeline_watch:watch",
}
"""Where the command of each section is."""

LEFT_OUT = frozenset({"config", "until_eof"})
"""Parameters that no file can have: which file it is, and what a parent process says to its child."""

TEXTS_WITH_PATHS: Mapping[tuple[str, str], str] = {
    ("filemq.serve", "folders"): "",
    ("filemq.subscribe", "server_key"): ".key",
}
"""Settings whose text begins with a path, which is relative to the file as all paths in it are, where it ends so."""

_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "text", Path: "a path"}


def load_section(name: str) -> Section:
    """Return the section of that name, which is in `SECTIONS`; imports its command."""
    module, _, function = SECTIONS[name].partition(":")
    return read_section_of(name, getattr(import_module(module), function))


def read_section_of(name: str, command: Callable[..., None]) -> Section:
    """Return the section that `command` declares by its parameters."""
    hints = get_type_hints(command, include_extras=True)
    settings = []
    for parameter in inspect.signature(command).parameters.values():
        declared = _declaration(hints[parameter.name])
        if declared is None or getattr(declared, "hidden", False) or parameter.name in LEFT_OUT:
            continue
        settings.append(_read_setting(name, parameter, hints[parameter.name], declared))
    title = (inspect.getdoc(command) or "").partition("\n\n")[0].replace("\n", " ")
    return Section(name, title, tuple(settings))


def _declaration(hint: Any) -> ParameterInfo | None:
    extras = hint.__metadata__ if get_origin(hint) is Annotated else ()
    return next((extra for extra in extras if isinstance(extra, ParameterInfo)), None)


def _read_setting(section: str, parameter: inspect.Parameter, hint: Any, declared: ParameterInfo) -> Setting:
    plain = _without_none(get_args(hint)[0])
    is_list = get_origin(plain) is list
    single = get_args(plain)[0] if is_list else plain
    kind, words = _bounded(single, declared)
    required = parameter.default is inspect.Parameter.empty
    return Setting(
        key=_key_of(parameter.name, declared),
        parameter=parameter.name,
        kind=GenericAlias(list, (kind,)) if is_list else kind,
        wanted=f"a list of {words} in [ ]" if is_list else words,
        help=declared.help or "",
        default=None if required else parameter.default,
        required=required,
        is_list=is_list,
        is_flag=single is bool,
        paths_end=TEXTS_WITH_PATHS.get((section, parameter.name)),
    )


def _key_of(name: str, declared: ParameterInfo) -> str:
    """Return the long name of the option, or the name of the argument."""
    if isinstance(declared, OptionInfo):
        # Where the option is an annotation, typer keeps the first of its names as if it were a default.
        for declaration in (declared.default, *(declared.param_decls or ())):
            if isinstance(declaration, str) and declaration.startswith("--"):
                return declaration.partition("/")[0].removeprefix("--")
    return name.replace("_", "-")


def _without_none(kind: Any) -> Any:
    if get_origin(kind) not in (Union, UnionType):
        return kind
    (only,) = (each for each in get_args(kind) if each is not NoneType)
    return only


def _bounded(kind: Any, declared: ParameterInfo) -> tuple[Any, str]:
    """Return what msgspec checks of one value, and the same in words."""
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind, _choice([str(each.value) for each in kind])
    if get_origin(kind) is Literal:
        return kind, _choice([str(each) for each in get_args(kind)])
    if kind is str:
        return Annotated[str, msgspec.Meta(min_length=1)], _WORDS[str]
    least, most = declared.min, declared.max
    words = _WORDS[kind]
    if least is not None:
        words += f" of at least {least:g}" if most is None else f" from {least:g} to {most:g}"
    if kind in (int, float):
        return Annotated[kind, msgspec.Meta(ge=least, le=most)], words
    return kind, words


def _choice(values: list[str]) -> str:
    return f"one of {', '.join(map(repr, values))}"
