"""Arguments of a task: JSON in, values of the types in its signature out.

Types are those of msgspec (numbers, strings, lists, dicts, dataclasses, `msgspec.Struct`, enums, dates, …)
and pydantic models (any class with `model_validate`). A `SharedFile` is given by its URL, at any depth. A
parameter without a type accepts any JSON.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from specwire.runtime.norfab.worker.sharedfile import SharedFile, files_from, make_shared_file

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_REQUIRED = inspect.Parameter.empty


class ArgumentsError(ValueError):
    """The arguments of a job do not match its task; the message has the details."""


class SignatureError(TypeError):
    """A task cannot be called with JSON; the message has the reason."""


class _Parameter(NamedTuple):
    name: str
    kind: Any
    default: Any
    hint: Any
    decode: Callable[[bytes], Any]


class Signature:
    """Parameters of a task.

    Args:
        function: the task, bound or not.
        given: type of parameters whose argument comes from the worker.

    Raises:
        SignatureError: JSON cannot be converted to a type.
    """

    def __init__(self, function: Callable[..., Any], given: type) -> None:
        try:
            hints = typing.get_type_hints(function, include_extras=True)
        except Exception as error:  # noqa: BLE001 - the text of a type is a plugin's own code
            raise SignatureError(f"the types of its parameters cannot be read: {error}") from None
        self._given: list[str] = []
        self._parameters: list[_Parameter] = []
        self._in_order: list[inspect.Parameter] = []
        for name, parameter in inspect.signature(function).parameters.items():
            hint = hints.get(name, Any)
            if parameter.kind in _POSITIONAL:
                self._in_order.append(parameter)
            if hint is given or (name == "job" and hint is Any):
                self._given.append(name)
            else:
                decode = _decoder(name, hint)
                self._parameters.append(_Parameter(name, parameter.kind, parameter.default, hint, decode))
        self._positional = [part for part in self._parameters if part.kind in _POSITIONAL]
        self._named = {
            part.name: part
            for part in self._parameters
            if part.kind in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        }
        self._rest = self._of_kind(inspect.Parameter.VAR_POSITIONAL)
        self._others = self._of_kind(inspect.Parameter.VAR_KEYWORD)

    def _of_kind(self, kind: Any) -> _Parameter | None:
        return next((part for part in self._parameters if part.kind is kind), None)

    def read(
        self, args: Sequence[msgspec.Raw], kwargs: Mapping[str, msgspec.Raw], given: Any
    ) -> tuple[list[Any], dict[str, Any]]:
        """Return what to call the task with, `given` for what no client gives; raises ArgumentsError.

        Files of the broker's that arguments name are fetched by `given.fetch`, when the task uses them.
        """
        with files_from(lambda url: given.fetch(url)):
            return self._read(args, kwargs, given)

    def _read(
        self, args: Sequence[msgspec.Raw], kwargs: Mapping[str, msgspec.Raw], given: object
    ) -> tuple[list[Any], dict[str, Any]]:
        count = len(self._positional)
        if len(args) > count and self._rest is None:
            raise ArgumentsError(f"takes {count} arguments in order, and {len(args)} came")
        values = {
            part.name: _read(part, raw) for part, raw in zip(self._positional, args[:count], strict=False)
        }
        rest = [] if self._rest is None else [_read(self._rest, raw) for raw in args[count:]]
        for name, raw in kwargs.items():
            part = self._named.get(name, self._others)
            if part is None or name in self._given:
                raise ArgumentsError(f"has no argument {name[:80]!r}")
            if name in values:
                raise ArgumentsError(f"argument {name[:80]!r} came twice")
            values[name] = _read(part, raw)
        for part in self._parameters:
            optional = part.default is not _REQUIRED or part is self._rest or part is self._others
            if not optional and part.name not in values:
                raise ArgumentsError(f"argument {part.name!r} is missing")
        values |= dict.fromkeys(self._given, given)
        return [*self._take_ordered(values, up_to_rest=bool(rest)), *rest], values

    def _take_ordered(self, values: dict[str, Any], *, up_to_rest: bool) -> list[Any]:
        """Take out what cannot be given by name: it stands before further arguments in order, or has no name."""
        taken = []
        for parameter in self._in_order:
            if not up_to_rest and parameter.kind is not inspect.Parameter.POSITIONAL_ONLY:
                break
            if parameter.name not in values and not up_to_rest:
                break
            taken.append(values.pop(parameter.name, parameter.default))
        return taken

    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of the arguments by name, as far as the types have one."""
        named = [part for part in self._parameters if part is not self._rest and part is not self._others]
        return {
            "type": "object",
            "properties": {part.name: _schema(part) for part in named},
            "required": [part.name for part in named if part.default is _REQUIRED],
            "additionalProperties": self._others is not None,
        }


def _decoder(name: str, hint: Any) -> Callable[[bytes], Any]:
    try:
        decode: Callable[[bytes], Any] = msgspec.json.Decoder(hint, dec_hook=_make).decode
    except (TypeError, ValueError) as error:
        raise SignatureError(f"parameter {name!r}: {error}") from None
    return decode


def _make(kind: type, value: Any) -> Any:
    """Make a value of a class that msgspec does not know."""
    if kind is SharedFile:
        return make_shared_file(value)
    validate = getattr(kind, "model_validate", None)
    if validate is None:
        raise NotImplementedError(f"no value of {kind.__name__} can be made of JSON")
    return validate(value)


def _read(part: _Parameter, raw: msgspec.Raw) -> Any:
    try:
        return part.decode(bytes(raw))
    except Exception as error:  # noqa: BLE001 - a class of the plugin's own may raise anything
        raise ArgumentsError(f"argument {part.name!r}: {error}") from None


def _schema(part: _Parameter) -> dict[str, Any]:
    try:
        schema = msgspec.json.schema(part.hint, schema_hook=_describe)
    except Exception:  # noqa: BLE001 - a help for people: a type without a schema is described less
        schema = {"title": str(part.hint)}
    if part.default is not _REQUIRED:
        try:
            schema["default"] = msgspec.to_builtins(part.default)
        except (TypeError, ValueError):
            return schema
    return schema


def _describe(kind: type) -> dict[str, Any]:
    if kind is SharedFile:
        return {"type": "string", "pattern": "^nf://", "title": "URL of a file that the broker shares"}
    schema = getattr(kind, "model_json_schema", None)
    return dict(schema()) if schema is not None else {"title": kind.__name__}
