"""Presentation of the command line: names of values in help, one line per usage error.

Help is plain text, wrapped to 80 columns, so that it reads the same on a terminal and in a pipe and
nothing is cut off. `tidy` completes what typer leaves to its own notation (``<int range>``,
``{old}``). A usage error is the usage line and one sentence, in the style of all other errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from specwire.runtime.kernel.settings import Section

UsageError: Any = typer.BadParameter.__base__
"""Base class of typer's usage errors, which it does not export."""

_VALUES = {"int": "NUMBER", "float": "NUMBER", "Path": "PATH"}
_KINDS = {"int": "a whole number", "float": "a number", "finite": "a number", "bool": "true or false"}
"""Expected kinds, by the first word of the validator's fault type: ``int_parsing``."""
_BOUNDS = {"greater_than_equal": ("at least", "ge"), "less_than_equal": ("at most", "le")}
_MAX_SHOWN = 80


# Any, because typer carries a private copy of click and exports none of these types.
def tidy(command: Any) -> None:
    """Name the values of a command and of all below it, and keep their help lines whole."""
    command.short_help = " ".join((command.help or "").partition("\n\n")[0].split())
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            _tidy_argument(parameter)
        elif parameter.metavar is None and not parameter.is_flag:
            parameter.metavar = _value_of(parameter)
    for below in getattr(command, "commands", {}).values():
        tidy(below)


def _tidy_argument(argument: Any) -> None:
    """Show an argument as ``NAME``, ``[NAME]`` or ``NAME...``."""
    name = (argument.metavar or argument.name.upper()).replace("…", "...")
    usage = name
    if not name.startswith("["):  # then it says itself what may be omitted
        name = name.removesuffix("...")
        usage = f"{name if argument.required else f'[{name}]'}{'' if argument.nargs == 1 else '...'}"
    argument.metavar = name
    argument.get_usage_pieces = lambda ctx: [usage]
    argument.display_type_rich = lambda ctx: None


def _value_of(option: Any) -> str:
    kind = option.type_descriptor
    if kind.is_choice:
        return "|".join(str(getattr(choice, "value", choice)) for choice in kind.choices or ())
    annotation = kind.annotation
    return _VALUES.get(getattr(annotation, "__name__", ""), "TEXT")


def describe_usage_error(error: Any) -> str:
    """Return the usage line, the command that prints help, and a sentence with the fault."""
    sentence = _sentence_of(error).replace(". Did", "; did").rstrip(".")
    sentence = f"specwire: {sentence[:1].lower()}{sentence[1:]}"
    if error.ctx is None:
        return sentence
    return f"{error.ctx.get_usage()}\nTry '{error.ctx.command_path} -h' for help.\n{sentence}"


def _sentence_of(error: Any) -> str:
    if isinstance(error, typer.BadParameter):
        find = getattr(error.__cause__, "errors", None)
        if find is not None and (faults := find()):
            error.message = sentence_of(faults[0])
    if hasattr(error, "possibilities"):
        return _unknown_option(error)
    return str(error.format_message())


def _unknown_option(error: Any) -> str:
    option = error.option_name
    section = getattr(getattr(error.ctx and error.ctx.command, "callback", None), "section", None)
    if section and (advice := _advice_on_setting(section, option.lstrip("-"))):
        return f"{option} {advice}"
    close = " or ".join(sorted(error.possibilities or ()))
    return f"no such option: {option}{f'; did you mean {close}?' if close else ''}"


def _advice_on_setting(section: Section, name: str) -> str:
    """Return how to set what `name` means, empty if it is no setting."""
    setting, opposite = section.find(name), section.find(name.removeprefix("no-"))
    if setting is not None and not setting.rare and not setting.argument:
        return f"is not an option: use --{setting.option}"
    if setting is not None:
        return f"is a setting without an option: use --set {setting.key}=VALUE"
    if opposite is not None and opposite.is_flag:
        return f"is not an option: use --set {opposite.key}=false"
    return ""


def sentence_of(fault: Mapping[str, Any]) -> str:
    """Return the sentence for a fault of the validator: its type, bounds, input and message."""
    kind = str(fault["type"])
    given = f"{fault.get('input')}"
    given = given if len(given) <= _MAX_SHOWN else f"{given[: _MAX_SHOWN - 1]}…"
    if kind in _BOUNDS:
        words, bound = _BOUNDS[kind]
        return f"expected {words} {fault['ctx'][bound]:g}, not {given}"
    if expected := _KINDS.get(kind.partition("_")[0]):
        return f"expected {expected}, not {given!r}"
    return str(fault["msg"]).removeprefix("Value error, ")
