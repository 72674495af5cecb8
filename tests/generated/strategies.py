"""Messages of any package, made from its layout table: fitting ones, and ones with anything in any field."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from specwire.generated.layout import (
    Field,
    Frame,
    Integer,
    Json,
    Keyword,
    ListOf,
    MessageLayout,
    Octets,
    Pairs,
    Record,
    Rest,
    Stack,
    Text,
    Type,
    Union,
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
            if field.implied:
                continue
            fitting = _value_of(module, part, field, layout_of(module).announcing)
            if field.optional:
                fitting = st.none() | fitting
                trailing.append(field.attribute)
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


def _value_of(
    module: ModuleType, part: Frame | Stack | Rest, field: Field, announcing: int
) -> SearchStrategy[Any]:
    if field.flags:
        return st.integers(0, 255).map(lambda value: value & ~announcing)
    if isinstance(part, Frame):
        return _value(module, field.type)
    element = _value(module, field.type)
    if isinstance(part, Stack):
        element = element.filter(bool)
    return st.lists(element, max_size=3).map(tuple)


def _value(module: ModuleType, type: Type) -> SearchStrategy[Any]:
    match type:
        case Integer(octets=octets, members=members):
            return st.sampled_from(members) if members else st.integers(0, 256**octets - 1)
        case Keyword(options=options):
            return st.sampled_from(options)
        case Text():
            return _text(type)
        case Json():
            return st.sampled_from(["{}", '{"a": [1, "\u00e9"]}', "null", "", "no JSON"])
        case Octets(span=span, minimum=minimum, maximum=maximum):
            most = span.octets if span.kind == "fixed" else 40 if maximum is None else maximum
            return st.binary(min_size=max(minimum, most if span.kind == "fixed" else 0), max_size=most)
        case ListOf(element=element, minimum=minimum):
            return st.lists(_value(module, element), min_size=minimum, max_size=minimum + 3).map(tuple)
        case Pairs():
            return _pairs(module, type)
        case Record():
            return _record(module, type)
        case Union(options=options):
            return st.one_of([_record(module, option) for option in options])
    raise AssertionError(type)


def _text(type: Text) -> SearchStrategy[str]:
    if type.span.kind == "fixed":
        least = 0 if type.padding is not None else type.span.octets
        texts = st.text(st.characters(codec="ascii"), min_size=least, max_size=type.span.octets)
        return texts.map(lambda text: text.rstrip((type.padding or b"").decode())) if not least else texts
    if type.span.kind == "until":
        end = type.span.until.decode()
        return WORDS.filter(lambda text: (text + end).index(end) == len(text))
    return WORDS.map(lambda text: text.replace("\0", "")) if type.terminated else WORDS


def _pairs(module: ModuleType, type: Pairs) -> SearchStrategy[Any]:
    name, value = _text(type.name), WORDS if type.value is None else _value(module, type.value)
    if type.split == "first":
        name = name.map(lambda text: text.replace("=", ""))
    if type.split == "last":
        value = value.map(lambda text: text.replace("=", ""))
    return st.lists(st.tuples(name, value), min_size=type.minimum, max_size=type.minimum + 3).map(tuple)


def _record(module: ModuleType, type: Record) -> SearchStrategy[Any]:
    valued = [field for field in type.fields if not field.implied]
    trailing = [field.attribute for field in valued if field.optional]
    values = {
        field.attribute: st.none() | _value(module, field.type)
        if field.optional
        else _value(module, field.type)
        for field in valued
    }
    made = st.fixed_dictionaries(values).map(lambda found: _consistent(found, [], trailing))
    return made.map(lambda found: getattr(module.codec, type.class_name)(**found))


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
