"""Changes outside messages: sockets, timers, answers, framing of streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from specwire.generator import ir
from specwire.generator.compare.comparison import (
    NAME_ONLY,
    Change,
    Judgement,
    Texts,
    change,
    depends,
    each,
    no,
    yes,
)
from specwire.generator.compare.context import Context
from specwire.generator.compare.wording import count_octets

_LOOKED_FOR = yes("changed octets at this place are listed with the messages")
_ONE_CASE = depends("correct if the letters of the tag are written in the case of the specification")
_BOTH_CASES = yes("the reader accepts the letters in either case")
_SHALLOW = yes("the reader accepts as many values inside each other as are written")
_ROLE = depends("the messages are the same; an edition without the role neither sends nor receives them")
_SOCKET = depends("the messages are the same; they arrive if the two socket types can be connected")
_WAIT = depends("the messages are the same; one peer may give up while the other still waits")
_ANSWER = yes("the messages are the same; a faulty one is answered differently")
_FRAMED_OTHERWISE = no("a reader finds different ends of parts and messages")
_NO_STREAM = no("a reader without the framing cannot read the stream")
_STREAM_LEFT_OUT = depends(
    "messages on ZeroMQ sockets are the same; a reader without the framing cannot read the stream"
)
_STREAM_UNUSED = yes("no such stream is written")


Rename = Callable[[str], str]


def agreement_changes(context: Context) -> Iterator[Change]:
    """Yield the changes of selectors, limits, roles, timers, answers and the stream."""
    yield from _selectors(context)
    yield from _letter_case(context)
    yield from _depth(context)
    yield from _roles(context)
    yield from _timers(context)
    yield from _answers(context)
    yield from _stream(context)


def _selectors(context: Context) -> Iterator[Change]:
    old, new = (", ".join(map(_selector, protocol.selectors)) for protocol in (context.old, context.new))
    if old != new:
        readings = _LOOKED_FOR, _LOOKED_FOR
        yield change("selectors", "selector", "place of the tag", (old, new), readings)


def _letter_case(context: Context) -> Iterator[Change]:
    old, new = ("in either case" if p.folded else "in one case" for p in (context.old, context.new))
    if old != new:
        readings = (_ONE_CASE, _BOTH_CASES) if context.new.folded else (_BOTH_CASES, _ONE_CASE)
        yield change("selectors", "selector", "letters of the tag", (old, new), readings)


def _depth(context: Context) -> Iterator[Change]:
    old, new = context.old.max_depth, context.new.max_depth
    if old and new and old != new:
        fewer = depends(f"correct if at most {min(old, new)} values are inside each other")
        readings = (fewer, _SHALLOW) if old < new else (_SHALLOW, fewer)
        yield change("limits", "limit", "values inside each other", (str(old), str(new)), readings)


def _selector(selector: ir.Selector) -> str:
    if selector.pattern:
        return f"frame {selector.frame}: how it begins"
    size = "whole" if selector.octets is None else count_octets(selector.octets)
    return f"frame {selector.frame}: {size}"


def _roles(context: Context) -> Iterator[Change]:
    old, new = ({role.letter: role for role in protocol.roles} for protocol in (context.old, context.new))
    for letter in old | new:
        before, after = old.get(letter), new.get(letter)
        if before is None or after is None:
            yield change("roles", "role", letter, each(_role, before, after), (_ROLE, _ROLE))
            continue
        if before.name != after.name:
            names = before.name, after.name
            yield change("roles", "role", letter, names, (NAME_ONLY, NAME_ONLY), kind="renamed")
        if before.socket != after.socket:
            sockets = before.socket, after.socket
            yield change("roles", "role", letter, sockets, (_SOCKET, _SOCKET), kind="socket")


def _role(role: ir.Role) -> str:
    return f"{role.name}, {role.socket}"


def _timers(context: Context) -> Iterator[Change]:
    old, new = dict(context.old.timers), dict(context.new.timers)
    for name in old | new:
        if old.get(name) != new.get(name):
            texts = each(_seconds, old.get(name), new.get(name))
            yield change("timers", "timer", name, texts, (_WAIT, _WAIT))


def _seconds(seconds: float) -> str:
    return f"{seconds:g} s"


def _answers(context: Context) -> Iterator[Change]:
    old, new = _rows(context.old, context.class_of, context.name_of), _rows(context.new, str, str)
    for fault in old | new:
        texts: Texts = old.get(fault), new.get(fault)
        if texts[0] != texts[1]:
            yield change("answers", "answer", fault, texts, (_ANSWER, _ANSWER))
    kept = [fault for fault in old if fault in new], [fault for fault in new if fault in old]
    if kept[0] != kept[1]:
        orders = "; ".join(kept[0]), "; ".join(kept[1])
        yield change("answers", "answer", "first that fits", orders, (_ANSWER, _ANSWER), kind="order")


def _rows(protocol: ir.Protocol, class_of: Rename, name_of: Rename) -> dict[str, str]:
    """Return the message class that answers each fault, or silence."""
    rows: dict[str, str] = {}
    for answer in protocol.answers:
        message = answer.message and name_of(answer.message)
        of = (("message", message), ("field", answer.field), ("kind", answer.kind))
        fault = ", ".join(f"{word} {value}" for word, value in of if value) or "any other fault"
        rows.setdefault(f"{answer.role}: {fault}", class_of(answer.reply) if answer.reply else "silence")
    for role, reply in protocol.unexpected:
        rows[f"{role}: unexpected message"] = class_of(reply)
    return rows


def _stream(context: Context) -> Iterator[Change]:
    old, new = context.old.stream, context.new.stream
    if old is None or new is None:
        if old != new:
            readings = (_STREAM_LEFT_OUT, _STREAM_UNUSED) if old is None else (_STREAM_UNUSED, _NO_STREAM)
            yield change("stream", "stream", "framing", (_framed(old), _framed(new)), readings)
        return
    if isinstance(old, ir.Stream) and isinstance(new, ir.Stream) and old.magics != new.magics:
        readings = _reads_magics(new.magics, old.magics), _reads_magics(old.magics, new.magics)
        magics = " or ".join(old.magics), " or ".join(new.magics)
        yield change("stream", "stream", "magic", magics, readings)
    if _framing(old) != _framing(new):
        readings = _FRAMED_OTHERWISE, _FRAMED_OTHERWISE
        if isinstance(old, ir.UnitStream) and isinstance(new, ir.UnitStream):
            readings = _reads_heads(new.heads, old.heads), _reads_heads(old.heads, new.heads)
        yield change(
            "stream",
            "stream",
            "framing",
            (_framed(old), _framed(new)),
            readings,
            kind="framing",
        )


def _framed(stream: ir.Stream | ir.UnitStream | None) -> str | None:
    return None if stream is None else _framing(stream)


def _framing(stream: ir.Stream | ir.UnitStream) -> str:
    if isinstance(stream, ir.UnitStream):
        if not stream.heads:
            return "messages whose layouts say where they end"
        return f"messages that begin with {' or '.join(map(_head, stream.heads))}"
    sizes = f"sizes below {stream.escape} in 1 octet, others in {stream.long_octets} after it"
    return f"length in {count_octets(stream.length_octets)}, {sizes}"


def _head(head: ir.UnitHead) -> str:
    if not head.size_octets:
        return f"0x{head.prefix} ({count_octets(head.octets)} in all)"
    return f"0x{head.prefix} (size in {count_octets(head.size_octets)}, {count_octets(head.skip)} later)"


def _reads_heads(writer: tuple[ir.UnitHead, ...], reader: tuple[ir.UnitHead, ...]) -> Judgement:
    if not writer or not reader:
        return yes("messages with the same layout have the same end")
    common = [head for head in writer if head in reader]
    if len(common) == len(writer):
        return yes("every beginning of a message that is written can be read")
    if not common:
        return _FRAMED_OTHERWISE
    return depends(f"read up to the first message that does not begin with {' or '.join(map(_head, common))}")


def _reads_magics(writer: tuple[str, ...], reader: tuple[str, ...]) -> Judgement:
    common = set(writer) & set(reader)
    if common == set(writer):
        return yes("every magic that is written can be read")
    if not common:
        return no("no magic that is written can be read")
    return depends(f"read only where the magic is {' or '.join(sorted(common))}")
