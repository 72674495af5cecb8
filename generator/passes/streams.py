"""Framing of messages on a byte stream, as the profile declares or as the layouts allow.

Messages of one frame need no framing if each says itself where it ends. If all of them begin with
constants and a size, these heads say it (`specwire.generator.passes.heads`). Otherwise the messages
are measured (`specwire.generated.measure`). Then no message may need the octets after it: neither to
find its end, nor to be distinguished from another message.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import dropwhile

from specwire.generator import ir
from specwire.generator.diagnostics import Diagnostics
from specwire.generator.passes.firsts import first_octets
from specwire.generator.passes.heads import find_units, fits
from specwire.generator.passes.layouts import ends, least_octets
from specwire.generator.passes.overlaps import overlapping
from specwire.generator.passes.shapes import weight
from specwire.generator.passes.tags import is_folded
from specwire.generator.profile.tables import LoadedProfile

Fault = tuple[str, str]
"""Reason why the end of a message is not defined, and help."""


def find_stream(
    loaded: LoadedProfile, messages: Sequence[ir.Message], diagnostics: Diagnostics
) -> ir.Stream | ir.UnitStream | None:
    """Return the framing of a stream: parts with sizes, or messages that say where they end.

    The profile need not declare the latter if each message begins with constants and has a size of
    everything after it, or a fixed length; at least one has a size. E420 if the profile requires it
    and the layouts do not allow it.
    """
    table = loaded.profile.stream
    if table is not None and table.units is None:
        return ir.Stream(table.magics, table.length_octets, table.escape, table.long_octets)
    units = find_units(messages)
    sized = units is not None and any(head.size_octets for head in units.heads)
    if not (sized if table is None else table.units):
        return None
    if units is not None and not is_folded(messages):  # heads are compared exactly
        return units
    fault = find_fault(messages)
    if fault is None:
        return ir.UnitStream()
    if table is not None:
        reason, help = fault
        sentence = f"the end of a message on a stream is not defined: {reason}"
        diagnostics.error("E420", loaded.place("stream", "units"), sentence, help)
    return None


def find_fault(messages: Sequence[ir.Message]) -> Fault | None:
    """Return why messages do not all say where they end; None if they do."""
    faults = (fault for message in messages if (fault := _fault_at_end(message)))
    return next(faults, None) or _fault_at_beginning(messages)


def _fault_at_end(message: ir.Message) -> Fault | None:
    """Return why a message is not one frame that ends where its own octets say."""
    match message.parts:
        case (ir.Frame(fields=fields, presence=ir.Always()),):
            pass
        case _:
            reason = f"'{message.rule}' is not one frame"
            return reason, "declare how parts are framed: `magics` and the other keys"
    if not ends(fields):
        reason = f"'{message.rule}' ends where its frame ends"
        return reason, "end it with a value that has a length, a terminator or a fixed size"
    if _looks_ahead(fields):
        reason = f"only the octets after '{message.rule}' say where it ends"
        return reason, "end it with a constant, or a value of fixed size, that is always present"
    for run in _runs(fields):
        if number := _decides_from_inside(run):
            reason = f"'{number}' is among octets that another number counts, and decides what follows them"
            return reason, "let no other number count it, or count in the same number what it decides"
    if not _least(fields):
        return f"'{message.rule}' can be empty", "begin it with a constant"
    return None


def _runs(fields: Sequence[ir.Field]) -> Iterator[Sequence[ir.Field]]:
    """Yield a run, and those of the records in it."""
    yield fields
    types = [field.type for field in fields]
    while types:
        match types.pop():
            case ir.ListType(element=element):
                types.append(element)
            case ir.UnionType(options=options):
                types += options
            case ir.RecordType(fields=inside):
                yield from _runs(inside)


def _decides_from_inside(fields: Sequence[ir.Field]) -> str:
    """Return the first number among counted octets on which values after these depend; else ""."""
    regions = [set(field.type.counts) for field in fields if isinstance(field.type, ir.CounterType)]
    for field in fields:
        option = field.option
        numbers = {option.field: {field.name}} if option and option.field else {}
        if isinstance(field.type, ir.CounterType):
            numbers[field.name] = set(field.type.counts)
        for number, decided in numbers.items():
            if any(number in region and not decided <= region for region in regions):
                return number
    return ""


def _least(fields: Iterable[ir.Field]) -> int:
    return sum(least_octets(field.type) for field in fields if field.option is None and not field.optional)


def _looks_ahead(fields: Sequence[ir.Field], after: int = 0) -> bool:
    """Whether the end of a run depends on octets after it, beyond the `after` octets that always
    follow."""
    sized = next((at for at, field in enumerate(fields) if isinstance(field.type, ir.SizeType)), None)
    if sized is not None:
        return _looks_ahead(fields[:sized], 1)
    counted = {
        name for field in fields if isinstance(field.type, ir.CounterType) for name in field.type.counts
    }
    for field in reversed(fields):
        items = isinstance(field.type, ir.ListType | ir.PairsType) and field.type.counted
        if field.name not in counted or items:
            peeks = field.option is not None and field.option.kind == "octets" and not after
            if peeks or _needs_more(field.type, after):
                return True
        after += 0 if field.option else least_octets(field.type)
    return False


def _needs_more(type: ir.Type, after: int) -> bool:
    """Whether the end of a value depends on octets after it, beyond `after` octets."""
    match type:
        case ir.TextType(length=ir.Length(kind="run")):
            return not after
        case ir.RecordType(fields=fields):
            return _looks_ahead(fields, after)
        case ir.UnionType(options=options, tags=tags):
            return any(
                _looks_ahead(option.fields, after)
                or (_is_beginning(tag, tags) and least_octets(option) + after <= len(tag) // 2)
                for option, tag in zip(options, tags, strict=True)
            )
        case ir.ListType(element=element, after=behind):
            return _needs_more(element, after + len(behind) // 2)
        case ir.PairsType(name=name, value=value, after=behind):
            return _needs_more(value or name, after + len(behind) // 2)
    return False


def _is_beginning(tag: str, tags: Sequence[str]) -> bool:
    """Whether another tag begins with a tag: the octet after the shorter one distinguishes them."""
    return any(other != tag and other.startswith(tag) for other in tags)


@dataclass(frozen=True, slots=True)
class _Beginning:
    """One way in which a message begins, and how specific it is."""

    message: ir.Message
    octets: str
    weight: int
    whole: bool = False
    needs_sender: bool = False

    def is_sent_apart(self, other: _Beginning) -> bool:
        """Whether the sender distinguishes both messages."""
        common = set(self.message.senders) & set(other.message.senders)
        return self.needs_sender and other.needs_sender and not common


def _fault_at_beginning(messages: Sequence[ir.Message]) -> Fault | None:
    """Return why a message can be complete before its octets distinguish it from others."""
    rows = [row for message in messages for row in _beginnings(message)]
    rows.sort(key=lambda row: -row.weight)
    for at, places in overlapping([(row.octets,) for row in rows]):
        for place in places:
            first, other = rows[min(at, place)], rows[max(at, place)]
            if first.message is other.message or first.is_sent_apart(other):
                continue
            size = len(first.octets) // 2
            part = other.message.parts[0]
            early = isinstance(part, ir.Frame) and _least(part.fields) < size
            if isinstance(part, ir.Frame) and _differs(part.fields, other.octets, first.octets):
                continue
            if (first.whole or early) and fits(first.octets, other.octets):
                reason = f"'{other.message.rule}' may begin like '{first.message.rule}'"
                return reason, (
                    "begin each message with another constant; if no role sends both, name their `senders` under "
                    "[message.NAME]"
                )
    return None


def _differs(fields: Sequence[ir.Field], octets: str, longer: str) -> bool:
    """Whether the octet after the constants of a message cannot be that of a message with more of them."""
    behind = list(dropwhile(lambda field: field.constant and field.option is None, fields))
    after = longer[len(octets) : len(octets) + 2]
    known = longer.startswith(octets) and "?" not in octets + after
    firsts = first_octets(behind)
    folded = frozenset(bytes(firsts).lower())  # octets are in lower case if letters are read in either case
    return known and bool(after) and bool(behind) and int(after, 16) not in firsts | folded


def _beginnings(message: ir.Message) -> Iterator[_Beginning]:
    for tag in message.tags:
        yield _Beginning(message, tag, len(tag) // 2)
    for shape in message.shapes:
        for head in shape.frames:
            yield _Beginning(message, head.octets, weight(shape), head.whole, shape.needs_sender)
