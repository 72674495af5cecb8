"""Changes in the messages of a protocol: added and removed messages, names, tags, then their contents."""

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
from specwire.generator.compare.fields import field_changes
from specwire.generator.compare.matching import MessageMatch
from specwire.generator.compare.parts import part_changes
from specwire.generator.compare.tables import judge_message
from specwire.generator.compare.wording import describe_part

_UNKNOWN = depends("all other messages are read: the reader rejects this one, so a new peer must not send it")
_UNSENT = yes("it does not occur")
_SPELLED = depends("correct if no message of the old edition has these octets")
_GONE = no("the reader rejects a message that the other edition writes")


def message_changes(context: Context) -> Iterator[Change]:
    """Yield the changes of all messages in the order of the old edition, then the new messages."""
    layouts = iter(context.layouts)
    for pair in context.messages:
        if pair.old and pair.new:
            match = next(layouts)
            yield from _names(match)
            if context.old.selectors == context.new.selectors:
                yield from _tags(match)
            yield from part_changes(match, context)
            yield from field_changes(match, context)
        else:
            name, texts = pair.either.name, each(_all_parts, pair.old, pair.new)
            readings = (_UNSENT, _GONE) if pair.old else (_UNKNOWN, _unsent(pair.either, context.old))
            yield change(name, "message", name, texts, readings, judge_message(pair.old, pair.new))


def _unsent(new: ir.Message, old: ir.Protocol) -> Judgement:
    """Return how a reader with a new message reads old data: a message with an open name may look like it."""
    if not any(selector.pattern for selector in old.selectors):
        return _UNSENT
    tags = [tag for message in old.messages for tag in message.tags]
    return _SPELLED if any(_may_begin(one, tag) for one in new.tags for tag in tags) else _UNSENT


def _may_begin(pattern: str, other: str) -> bool:
    """Whether octets that fit `pattern` can fit `other` too."""
    return all(a == b or "?" in (a, b) for a, b in zip(pattern, other, strict=False))


def _all_parts(message: ir.Message) -> str:
    return "; ".join(map(describe_part, message.parts))


def _names(match: MessageMatch) -> Iterator[Change]:
    names = _full_name(match.old), _full_name(match.new)
    if match.old.class_name != match.new.class_name:
        readings, tables = (NAME_ONLY, NAME_ONLY), judge_message(match.old, match.new)
        yield change(match.label, "message", match.old.name, names, readings, tables, "renamed")


def _full_name(message: ir.Message) -> str:
    return message.name if message.name == message.rule else f"{message.name} ({message.rule})"


def _tags(match: MessageMatch) -> Iterator[Change]:
    old, new = match.old.tags, match.new.tags
    if set(old) != set(new):
        readings = _reads_tag(new, old), _reads_tag(old, new)
        yield change(match.label, "message", match.old.name, each(_tag, old, new), readings, kind="tag")


def _tag(tags: tuple[str, ...]) -> str:
    return " or ".join(f"0x{tag}" for tag in tags)


def _reads_tag(writer: tuple[str, ...], reader: tuple[str, ...]) -> Judgement:
    common = tuple(tag for tag in writer if tag in reader)
    if len(common) == len(writer):
        return yes("every tag that is written can be read")
    if not common:
        return no("the reader does not know the tag, or reads it as another message")
    return depends(f"read only where the tag is {_tag(common)}")
