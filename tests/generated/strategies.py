"""Messages of any package, made from its layout table: fitting ones, and ones with anything in any field."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from specwire.generated.layout import (
    Constant,
    Field,
    Frame,
    Integer,
    Json,
    Keyword,
    ListOf,
    MessageLayout,
    Octets,
    Pairs,
    Rest,
    Stack,
    Text,
    Type,
)
from specwire.generated.messages import Message
from tests.generated.agreement import layout_of

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
"""Text that UTF-8 can write, of at most 48 octets."""


def messages(module: ModuleType) -> SearchStrategy[Message]:
    """Return messages that encode by default."""
    return st.one_of([_message(module, entry) for entry in layout_of(module).messages])


def anything(module: ModuleType) -> SearchStrategy[Message]:
    """Return messages whose fields hold what fits and what does not, of any type."""
    return st.one_of([_message(module, entry, wild=True) for entry in layout_of(module).messages])


def frame_lists() -> SearchStrategy[list[bytes]]:
    """Return any frames at all."""
    return st.lists(st.binary(max_size=40), max_size=9)


def _message(module: ModuleType, entry: MessageLayout, *, wild: bool = False) -> SearchStrategy[Message]:
    values: dict[str, SearchStrategy[Any]] = {}
    readings: dict[int, list[str]] = {}
    trailing: list[str] = []
    for part in entry.parts:
        for field in part.fields if isinstance(part, Frame) else (part.field,):
            if isinstance(field.type, Constant):
                continue
            fitting = _value_of(part, field, layout_of(module).announcing)
            if not isinstance(part, Rest) and part.presence.kind == "announced":
                fitting = st.none() | fitting
                readings.setdefault(part.presence.mask, []).append(field.attribute)
            if not isinstance(part, Rest) and part.presence.kind == "counted":
                fitting = st.none() | fitting
                trailing.append(field.attribute)
            values[field.attribute] = fitting | _wild() if wild else fitting
    shared = [names for names in readings.values() if len(names) > 1]
    made = st.fixed_dictionaries(values)
    if not wild:
        made = made.map(lambda found: _consistent(found, shared, trailing))
    return made.map(lambda found: module.MESSAGES[entry.class_name](**found))


def _consistent(found: dict[str, Any], shared: list[list[str]], trailing: list[str]) -> dict[str, Any]:
    """One reading of a frame, and no trailing part after one that is not there."""
    for names in shared:
        there = [name for name in names if found[name] is not None]
        found |= dict.fromkeys(there[1:])
    for index, name in enumerate(trailing):
        if found[name] is None:
            found |= dict.fromkeys(trailing[index:])
    return found


def _value_of(part: Frame | Stack | Rest, field: Field, announcing: int) -> SearchStrategy[Any]:
    if field.flags:
        return st.integers(0, 255).map(lambda value: value & ~announcing)
    if isinstance(part, Frame):
        return _value(field.type)
    element = _value(field.type)
    if isinstance(part, Stack):
        element = element.filter(bool)
    return st.lists(element, max_size=3).map(tuple)


def _value(type: Type) -> SearchStrategy[Any]:
    match type:
        case Integer(octets=octets, members=members):
            return st.sampled_from(members) if members else st.integers(0, 256**octets - 1)
        case Keyword(options=options):
            return st.sampled_from(options)
        case Text(terminated=terminated):
            return WORDS.map(lambda text: text.replace("\0", "")) if terminated else WORDS
        case Json():
            return st.sampled_from(["{}", '{"a": [1, "\u00e9"]}', "null", "", "no JSON"])
        case Octets(span=span, minimum=minimum):
            most = span.octets if span.kind == "fixed" else 40
            return st.binary(min_size=max(minimum, most if span.kind == "fixed" else 0), max_size=most)
        case ListOf(element=element):
            return st.lists(_value(element), max_size=4).map(tuple)
        case Pairs(split=split):
            name = WORDS.map(lambda text: text.replace("=", "")) if split == "first" else WORDS
            value = WORDS.map(lambda text: text.replace("=", "")) if split == "last" else WORDS
            return st.lists(st.tuples(name, value), max_size=4).map(tuple)
    raise AssertionError(type)


def _wild() -> SearchStrategy[Any]:
    """What callers pass by mistake, and what just does not fit."""
    texts = st.sampled_from(
        ["", "\0", "a\0", "a=b", "=", "\ud800", "x" * 255, "x" * 256, "\u00e9" * 128, "NFPC01", "NFPX01"]
    )
    numbers = st.sampled_from(
        [-1, 0, 1, 2, 3, 0x0B, 0xFF, 0x100, 2**32 - 1, 2**32, 2**64 - 1, 2**64, 10**5000, True, 1.0, 0.5]
    )
    octets = st.sampled_from([b"", b"\0", b"ab", bytearray(b"ab"), memoryview(b"ab"), memoryview(b"")])
    one = st.one_of(st.none(), texts, numbers, octets)
    some = st.lists(one, max_size=3)
    pairs = st.lists(st.lists(one | WORDS, min_size=1, max_size=3).map(tuple) | one, max_size=3).map(tuple)
    many = st.sampled_from([(("a", "b"),) * 255, (("a", "b"),) * 256, ("ab",) * 2, {"ab": 1}, {"a": "b"}])
    lists = st.sampled_from([[], ["a"], [("a", "b")], (["a", "b"],), iter(()), object()])
    return st.one_of(one, some.map(tuple), pairs, many, lists)
