"""What a user wants certain fields to be: ``MESSAGE.FIELD=VALUE``, where a random value would lead nowhere."""

from __future__ import annotations

import json
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from specwire.runtime.rehearsal.errors import RehearsalError
from specwire.runtime.rehearsal.language import Language


def read_givens(language: Language, words: Sequence[str]) -> dict[str, dict[str, list[Any]]]:
    """Return by class and field the values that were given, of which one is taken each time.

    A value is JSON where it reads as JSON, else text.

    Raises:
        RehearsalError: there is no such message or field, or the value is not of its kind.
    """
    givens: dict[str, dict[str, list[Any]]] = {}
    for word in words:
        place, separator, text = word.partition("=")
        name, dot, field = place.partition(".")
        if not separator or not dot:
            raise RehearsalError(f"--set {word}: MESSAGE.FIELD=VALUE is wanted")
        kind = _find(name, list(language.package.MESSAGES), f"--set {word}: {language.name} has no message")
        fields = list(language.package.MESSAGES[kind].__match_args__)
        field = _find(field, fields, f"--set {word}: {kind} has no field")
        value = _read(language, kind, field, text, word)
        givens.setdefault(kind, {}).setdefault(field, []).append(value)
    return givens


def _find(name: str, known: Sequence[str], fault: str) -> str:
    if name in known:
        return name
    if f"{name}_" in known:
        return f"{name}_"
    close = get_close_matches(name, known, n=1)
    raise RehearsalError(f"{fault} {name!r}" + (f"; did you mean {close[0]!r}?" if close else ""))


def _read(language: Language, kind: str, field: str, text: str, word: str) -> Any:
    """Return the value that a field holds where `text` was given."""
    codec = import_module(f"{language.package.__name__}.codec")
    annotation = str(getattr(codec, kind).__annotations__[field]).removesuffix(" | None")
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    match annotation:
        case "str":
            return value if isinstance(value, str) else text
        case "bytes":
            return (value if isinstance(value, str) else text).encode()
        case "int" if isinstance(value, int) and not isinstance(value, bool):
            return value
        case _ if annotation.startswith("tuple") and isinstance(value, list):
            return _as_tuples(value)
    raise RehearsalError(f"--set {word}: {kind}.{field} wants {annotation}, not {text!r}")


def _as_tuples(value: Any) -> Any:
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value
