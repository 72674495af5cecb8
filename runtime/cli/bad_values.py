"""What an option or argument wants instead of what it got, in the words that faults of a configuration have.

Typer checks values with a validator whose sentences are for programmers ("Value error, ...", "Input should be ..."). What it
found is in the cause of its error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer

_KINDS = {"int": "a whole number", "float": "a number", "finite": "a number", "bool": "true or false"}
"""What is wanted, by the first word of what the validator calls the fault: ``int_parsing``."""
_BOUNDS = {"greater_than_equal": ("at least", "ge"), "less_than_equal": ("at most", "le")}
_MAX_SHOWN = 80


def reword(error: typer.BadParameter) -> None:
    """Put our words in the place of the validator's; an error that it did not cause stays as it is."""
    find = getattr(error.__cause__, "errors", None)
    if find is not None and (faults := find()):
        error.message = sentence_of(faults[0])


def sentence_of(fault: Mapping[str, Any]) -> str:
    """Return what is wrong, for a fault as the validator describes it: its type, bounds, input and sentence."""
    kind = str(fault["type"])
    given = f"{fault.get('input')}"
    given = given if len(given) <= _MAX_SHOWN else f"{given[: _MAX_SHOWN - 1]}…"
    if kind in _BOUNDS:
        words, bound = _BOUNDS[kind]
        return f"{words} {fault['ctx'][bound]} is wanted, not {given}"
    if wanted := _KINDS.get(kind.partition("_")[0]):
        return f"{wanted} is wanted, not {given!r}"
    return str(fault["msg"]).removeprefix("Value error, ")
