"""Classes of ``payloads.py``: a msgspec Struct for each kind of object in payloads."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from specwire.generator import ir
from specwire.generator.emit.python import paragraph, sentence
from specwire.generator.emit.write import header, render
from specwire.generator.ir.names import attribute

_SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
_META = {
    "minimum": "ge",
    "maximum": "le",
    "exclusiveMinimum": "gt",
    "exclusiveMaximum": "lt",
    "minLength": "min_length",
    "maxLength": "max_length",
    "minItems": "min_length",
    "maxItems": "max_length",
    "pattern": "pattern",
}
_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_IMPORTS = ("Annotated", "Any", "Literal", "TypeAlias")


@dataclass(frozen=True, slots=True)
class _Key:
    attribute: str
    type: str
    default: str
    doc: str


@dataclass(frozen=True, slots=True)
class _Class:
    name: str
    settings: str
    doc: str
    keys: tuple[_Key, ...]
    options: str = ""
    """Classes of a choice, which is no class itself."""


def emit(protocol: ir.Protocol) -> str:
    """Return the source of a package's payloads module; empty if the profile describes no payload."""
    if not protocol.payloads.payloads:
        return ""
    docs = {
        payload.type.class_name: f"Payload of the topic {payload.topic} ({_messages(payload)})."
        for payload in protocol.payloads.payloads
        if isinstance(payload.type, ir.NamedPayload)
    }
    classes = [_class(found, docs) for found in protocol.payloads.classes]
    payloads = [
        (_quote(one.topic), _quote(one.by), json.dumps(dict(one.places)), type_text(one.type))
        for one in protocol.payloads.payloads
    ]
    used = " ".join(
        [*(f"{key.type} {key.default}" for one in classes for key in one.keys), *(one[3] for one in payloads)]
    )
    words = set(re.findall(r"\w+", used)) | {"Any"}
    words |= {"TypeAlias"} if any(one.options for one in classes) else set()
    about = "An optional key is None if it is not there, and is not written then."
    return render(
        "payloads.py.j2",
        paragraph=paragraph,
        header=header(protocol, f"{protocol.edition}: payloads of messages.", about),
        typing=[name for name in _IMPORTS if name in words],
        msgspec=[name for name in ("Meta", "Struct", "field") if name in words | {"Struct"}],
        classes=classes,
        payloads=payloads,
        everything=sorted([*(one.name for one in classes), "PAYLOADS", "read"], key=_case_then_name),
    )


def type_text(type: ir.PayloadType) -> str:
    """Return a type as Python writes it."""
    match type:
        case ir.ScalarPayload(values=values) if values:
            return f"Literal[{', '.join(map(_literal, values))}]"
        case ir.ScalarPayload():
            return _limited(_SCALARS[type.type], _meta(type))
        case ir.ListPayload():
            return _limited(f"list[{type_text(type.items)}]", _meta(type))
        case ir.MapPayload():
            return f"dict[str, {type_text(type.values)}]"
        case ir.NamedPayload():
            return type.class_name
        case ir.UnionPayload():
            return " | ".join([*map(type_text, type.options), *(["None"] if type.null else [])])
    return "Any"


def _class(found: ir.PayloadObject | ir.PayloadChoice, docs: dict[str, str]) -> _Class:
    doc = sentence(found.doc) or docs.get(found.class_name, "")
    if isinstance(found, ir.PayloadChoice):
        return _Class(found.class_name, "", doc, (), " | ".join(found.options))
    settings = ["Struct", "omit_defaults=True", "kw_only=True"]
    if found.tag:
        settings += [f"tag_field={_quote(found.tag[0])}", f"tag={_quote(found.tag[1])}"]
        doc = doc or f"An object with the {found.tag[0]} {found.tag[1]!r}."
    settings += ["forbid_unknown_fields=True"] if found.closed else []
    return _Class(
        found.class_name, ", ".join(settings), doc or "An object in a payload.", tuple(_keys(found))
    )


def _keys(found: ir.PayloadObject) -> Iterator[_Key]:
    taken: set[str] = set()
    for key in found.keys:
        name = attribute(re.sub(r"\W", "_", key.name, flags=re.ASCII).strip("_") or "key")
        name = name if not name[0].isdigit() else f"key_{name}"
        while name in taken:
            name += "_"
        taken.add(name)
        text = type_text(key.type)
        renamed = [f"name={_quote(key.name)}"] if name != key.name else []
        if key.required:
            default = f"field({renamed[0]})" if renamed else ""
        else:
            text = text if text == "Any" or text.endswith("| None") else f"{text} | None"
            default = f"field(default=None, {renamed[0]})" if renamed else "None"
        yield _Key(name, text, f" = {default}" if default else "", sentence(key.doc))


def _meta(type: ir.ScalarPayload | ir.ListPayload) -> str:
    """Return the arguments of `Meta` for the limits that apply to a type."""
    kind = "array" if isinstance(type, ir.ListPayload) else type.type
    return ", ".join(f"{_META[name]}={value!r}" for name, value in type.limits if _applies(name, kind))


def _applies(name: str, kind: str) -> bool:
    if name in _NUMBERS:
        return kind in ("integer", "number")
    return kind == ("array" if name.endswith("Items") else "string")


def _limited(text: str, meta: str) -> str:
    return f"Annotated[{text}, Meta({meta})]" if meta else text


def _literal(value: str | int) -> str:
    return _quote(value) if isinstance(value, str) else str(value)


def _quote(text: str) -> str:
    return json.dumps(text)


def _messages(payload: ir.Payload) -> str:
    return ", ".join(message for message, _ in payload.places)


def _case_then_name(name: str) -> tuple[int, str]:
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)
