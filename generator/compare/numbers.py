"""Changes in named numbers: bits of the flags, members of enumerations, exported constants.

A number that kept its value but changed its name is the dangerous case: it is read without a fault
but may have another meaning. For a bit of the flags this is breaking, unless its comment, or the
part that it announces, shows that only the name changed. For a member of an enumeration a new word
with the same meaning is as likely, so the verdict depends on the editions.
"""

from __future__ import annotations

from collections.abc import Iterator

from specwire.generator import ir
from specwire.generator.compare.comparison import (
    NAME_ONLY,
    Change,
    Judgement,
    change,
    depends,
    each,
    no,
    yes,
)
from specwire.generator.compare.context import Context
from specwire.generator.compare.matching import Same, pair_up, same
from specwire.generator.compare.tables import REWRITE_VALUES

_OTHER_MEANING = no("the same octets have another meaning, and neither side can detect it")
_OTHER_NUMBER = no("the old and the new number are read as something else, or rejected")
_KEPT = depends("the bit is kept, but the reader does not know its meaning")
_UNSEEN = yes("data without it is read as before")
_UNNAMED = depends(
    "correct for all other values: the reader has no name for this one, and rejects it "
    "if the enumeration is closed"
)
_OTHER_WORD = depends("the octets are the same; correct if the new name has the same meaning")
_NO_NAME = yes("a name for a number is not on the wire")


def number_changes(context: Context) -> Iterator[Change]:
    """Yield the changes of flags, enumerations and constants."""
    yield from _flags(context)
    yield from _enumerations(context)
    yield from _constants(context)


def _flags(context: Context) -> Iterator[Change]:
    parts = context.part_names()
    by_name: Same[ir.FlagBit] = same(lambda bit: bit.name)
    by_value: Same[ir.FlagBit] = same(lambda bit: bit.value)
    for pair in pair_up(context.old.flags, context.new.flags, by_name, by_value):
        old, new = pair.old, pair.new
        name, texts = pair.either.name, each(_bit, old, new)
        if old is None:
            yield change("flags", "flag", name, texts, (_KEPT, _UNSEEN))
        elif new is None:
            yield change("flags", "flag", name, texts, (_UNSEEN, _KEPT))
        elif old.value != new.value:
            yield change("flags", "flag", name, texts, (_OTHER_NUMBER, _OTHER_NUMBER), REWRITE_VALUES)
        elif not _same_part(old, new, parts) or (old.name != new.name and not _same_comment(old, new)):
            readings = _OTHER_MEANING, _OTHER_MEANING
            yield change("flags", "flag", name, texts, readings, REWRITE_VALUES, "meaning")
        elif old.name != new.name:
            yield change("flags", "flag", name, texts, (NAME_ONLY, NAME_ONLY), kind="renamed")


def _bit(bit: ir.FlagBit) -> str:
    announces = f", announces {bit.announces}" if bit.announces else ""
    return f"{bit.name} 0x{bit.value:02x}{announces}"


def _same_part(old: ir.FlagBit, new: ir.FlagBit, parts: dict[str, set[str]]) -> bool:
    if old.announces is None or new.announces is None:
        return old.announces == new.announces
    return old.announces == new.announces or new.announces in parts.get(old.announces, set())


def _same_comment(old: ir.FlagBit, new: ir.FlagBit) -> bool:
    """Whether two bits have the same comment, so that only the name differs."""
    return bool(old.doc) and old.doc == new.doc


def _enumerations(context: Context) -> Iterator[Change]:
    for pair in context.enums:
        if pair.old and pair.new:
            yield from _members(pair.old, pair.new)
            continue
        texts = each(_all_members, pair.old, pair.new)
        why = yes("the effect on values is listed with the fields that use it")
        yield change("enumerations", "enumeration", pair.either.name, texts, (why, why))


def _all_members(enum: ir.Enum) -> str:
    return ", ".join(f"{name} {value}" for name, value in enum.members)


def _members(old: ir.Enum, new: ir.Enum) -> Iterator[Change]:
    group = f"enumeration {old.name}"
    if old.name != new.name:
        names = old.name, new.name
        yield change(group, "enumeration", old.name, names, (NAME_ONLY, NAME_ONLY), kind="renamed")
    for pair in pair_up(old.members, new.members, same(_key), same(_number)):
        texts = each(_member, pair.old, pair.new)
        if texts[0] == texts[1]:
            continue
        name = pair.either[0]
        if pair.old is None or pair.new is None:
            readings = _reads_member(pair.new, old), _reads_member(pair.old, new)
            yield change(group, "enumeration", name, texts, readings)
        elif pair.old[0] == pair.new[0]:
            yield change(group, "enumeration", name, texts, (_OTHER_NUMBER, _OTHER_NUMBER), REWRITE_VALUES)
        else:
            yield change(group, "enumeration", name, texts, (_OTHER_WORD, _OTHER_WORD), kind="renamed")


Member = tuple[str, int]


def _member(member: Member) -> str:
    return f"{member[0]} {member[1]}"


def _key(member: Member) -> str:
    return member[0]


def _number(member: Member) -> int:
    return member[1]


def _reads_member(written: Member | None, reader: ir.Enum) -> Judgement:
    if written is None:
        return _UNSEEN
    if written[1] in [value for _, value in reader.members]:
        return yes("the value has another name already")
    return _UNNAMED


def _constants(context: Context) -> Iterator[Change]:
    old, new = ({c.name: c.value for c in protocol.constants} for protocol in (context.old, context.new))
    for name in old | new:
        texts = each(str, old.get(name), new.get(name))
        if name not in old or name not in new:
            yield change("constants", "constant", name, texts, (_NO_NAME, _NO_NAME))
        elif texts[0] != texts[1]:
            yield change("constants", "constant", name, texts, (_OTHER_NUMBER, _OTHER_NUMBER), REWRITE_VALUES)
