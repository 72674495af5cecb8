"""What a program gives and gets as the payload of a message.

An object becomes JSON, a str text, each with the NUL that lets C programs use them where they lie; octets stand as
they are. `answering` has the octets' side of it; here are the types that callers use, and reasons in the errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import UnionType
from typing import Any, TypeVar, overload

import msgspec

from specwire.runtime.flux.answering import pack, pack_text
from specwire.runtime.flux.errors import EPROTO, FluxError

Type = TypeVar("Type")

Content = Mapping[str, Any] | msgspec.Struct | str | bytes | None
"""What a caller gives: an object or a Struct for JSON, text, octets, or None for no payload."""


def encode_payload(content: Content) -> bytes | None:
    """Return the payload that carries `content`.

    Raises:
        ValueError: a text has NUL in it, which would end it for whoever reads it.
        TypeError: `content`, or a value in it, is nothing that JSON has.
    """
    if type(content) is dict or isinstance(
        content, Mapping | msgspec.Struct
    ):  # asking for `dict` first saves most of the time
        return pack(content)
    match content:
        case None | bytes():
            return content
        case str():
            if "\0" in content:
                raise ValueError("a text payload cannot hold NUL; send it as bytes")
            return pack_text(content)
        case _:
            raise TypeError(
                "a payload is an object or a Struct for JSON, a str, bytes or None, "
                f"not {type(content).__name__}"
            )


def decode_text(payload: bytes | None) -> str:
    """Return the text that `payload` carries; raises FluxError (EPROTO)."""
    try:
        return str(_without_nul(payload), "utf-8")
    except UnicodeDecodeError as error:
        raise FluxError(EPROTO, f"the payload is no text: octet {error.start} is not UTF-8") from error


@overload
def decode_json(payload: bytes | None, type_: type[Type]) -> Type: ...
@overload
def decode_json(payload: bytes | None, type_: UnionType) -> Any: ...
def decode_json(payload: bytes | None, type_: Any) -> Any:
    """Return what the JSON in `payload` says, as `type_`; raises FluxError (EPROTO)."""
    try:
        return msgspec.json.decode(_without_nul(payload), type=type_)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FluxError(EPROTO, f"the payload is not the JSON that is wanted: {error}") from error


def text_of_error(payload: bytes | None) -> str:
    """Return what a failed response says, as far as it can be read; empty where it says nothing."""
    return str(payload or b"", "utf-8", "replace").rstrip("\0")


def _without_nul(payload: bytes | None) -> memoryview:
    if not payload:
        raise FluxError(EPROTO, "there is no payload")
    if payload[-1]:
        raise FluxError(EPROTO, "the payload does not end with NUL")
    return memoryview(payload)[:-1]
