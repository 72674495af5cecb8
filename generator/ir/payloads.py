"""Payloads of messages as the IR has them: types of JSON, with a name for each kind of object."""

from __future__ import annotations

from typing import Literal

import msgspec

Limit = tuple[str, int | float | str]
"""A bound of a value by its keyword in JSON Schema, such as ``("minimum", 1)``."""


class AnyPayload(msgspec.Struct, frozen=True, tag="any", tag_field="json"):
    """Any JSON value."""


class ScalarPayload(msgspec.Struct, frozen=True, tag="scalar", tag_field="json"):
    """A string, number or boolean; one of `values` if there are any."""

    type: Literal["string", "integer", "number", "boolean"]
    values: tuple[str | int | bool, ...] = ()
    limits: tuple[Limit, ...] = ()


class ListPayload(msgspec.Struct, frozen=True, tag="list", tag_field="json"):
    """An array."""

    items: PayloadType
    limits: tuple[Limit, ...] = ()


class MapPayload(msgspec.Struct, frozen=True, tag="map", tag_field="json"):
    """An object with any keys."""

    values: PayloadType


class NamedPayload(msgspec.Struct, frozen=True, tag="named", tag_field="json"):
    """An object or a choice of objects, by its class name."""

    class_name: str


class UnionPayload(msgspec.Struct, frozen=True, tag="union", tag_field="json"):
    """One of several types, which JSON distinguishes; with `null` also null."""

    options: tuple[PayloadType, ...]
    null: bool = False


PayloadType = AnyPayload | ScalarPayload | ListPayload | MapPayload | NamedPayload | UnionPayload


class PayloadKey(msgspec.Struct, frozen=True):
    """A key of an object."""

    name: str
    type: PayloadType
    required: bool
    doc: str = ""


class PayloadObject(msgspec.Struct, frozen=True, tag="object", tag_field="kind"):
    """An object with keys.

    `tag` is the key and the value that distinguish it in a choice; that key is not in `keys`. With
    `closed`, it has no other keys.
    """

    class_name: str
    keys: tuple[PayloadKey, ...]
    doc: str = ""
    tag: tuple[str, str] | None = None
    closed: bool = False


class PayloadChoice(msgspec.Struct, frozen=True, tag="choice", tag_field="kind"):
    """Objects of different classes, which the tag of each distinguishes."""

    class_name: str
    options: tuple[str, ...]
    doc: str = ""


class Payload(msgspec.Struct, frozen=True):
    """Payload of the messages whose field `by` matches `topic`, where ``*`` is any characters.

    `places` are the message classes and their fields with the payload.
    """

    topic: str
    by: str
    places: tuple[tuple[str, str], ...]
    type: PayloadType
    name: str


class Payloads(msgspec.Struct, frozen=True):
    """All payloads of a protocol, and the objects in them, each before its first use where it can be."""

    payloads: tuple[Payload, ...] = ()
    classes: tuple[PayloadObject | PayloadChoice, ...] = ()
