"""Layout of message rules: ordered ZeroMQ frames with their fields.

A message rule is a concatenation. Elements that are separate ZeroMQ frames (``FRAME``, a rule whose
comment says so, a rule that the profile declares as one) become frames. A run of other elements
before them is one frame with a field for each element (FILEMQ's CHEEZBURGER: a header frame, then
the chunk). ``*identity delimiter`` is a stack of routes; ``*more`` at the end is all remaining
frames.

A flag announces an optional part (`presence`); at the end of a message the number of frames does.
If the rule of a frame is a choice among rules (Flux's ``PROTO``), the one with the message's name
is used. If there is none, the frame holds any one of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from specwire.generator import ir
from specwire.generator.abnf.syntax import Concatenation, Element, Reference, Repetition, Rule
from specwire.generator.diagnostics import Diagnostics
from specwire.generator.ir.names import class_name, fold
from specwire.generator.passes.agreement import check_fields, check_parts, without_idle_flags
from specwire.generator.passes.counters import derive_fields
from specwire.generator.passes.field_names import distinct
from specwire.generator.passes.fields import FieldReader
from specwire.generator.passes.layouts import ChoiceLayout, FieldsLayout, ValueLayout, words_of
from specwire.generator.passes.presence import Flags
from specwire.generator.passes.slots import Slot, open_slots
from specwire.generator.passes.types import TypeReader
from specwire.generator.profile.tables import MessageTable

FRAME_WORDS = "zeromq frame"
"""Words in the comment of a rule that make it a separate frame."""
_CALLED_FRAME = re.compile(r"\bframe(?:,|\Z)", re.IGNORECASE)
"""So is one that the comment above it calls a frame ("Topic string frame, …")."""


class MessageReader:
    """Reader of the layouts of messages; a message with a fault (E4xx) is omitted."""

    def __init__(self, reader: TypeReader, flags: Flags) -> None:
        self.reader = reader
        self.flags = flags
        self.grammar = reader.grammar
        self.diagnostics = reader.diagnostics

    def message(self, rule: Rule, name: str, senders: tuple[str, ...]) -> ir.Message:
        """Return the message of `rule`, which is called `name`, without tags: they are found when all messages are known."""
        tables = self.reader.profile.profile.message
        table = next((tables[name] for name in tables if fold(name) == fold(str(rule))), MessageTable())
        fields = FieldReader(self.reader, rule, table)
        named = _distinct(tuple(self._parts(rule, table, fields)), rule, self.diagnostics)
        parts = without_idle_flags(_derived(self.reader, named, rule))
        check_fields(parts, rule, self.diagnostics)
        check_parts(parts, rule, self.diagnostics)
        return ir.Message(
            name=name,
            rule=str(rule),
            class_name=class_name(name),
            doc=words_of(rule.leading),
            line=rule.published_line,
            senders=senders or table.senders,
            parts=fields.settle(parts),
            tags=(),
        )

    def _parts(self, rule: Rule, table: MessageTable, fields: FieldReader) -> Iterator[ir.Part]:
        definition = rule.definition
        items = tuple(self._with_frames(definition))
        inline = 0
        while inline < len(items) and not self._begins_frame(items[inline]):
            inline += 1
        if inline:
            yield ir.Frame(rule.name, tuple(fields.run(items[:inline])))
        rest = open_slots(Concatenation(items[inline:], definition.span))
        for slot in rest:
            if not self._is_frame(slot.element):
                self._unsupported(rule, slot, "an element after a ZeroMQ frame that is not itself a frame")
            elif repetition := self._repeated(slot.element):
                yield self._frames(rule, slot, repetition, next(rest, None), fields)
            else:
                yield from self._part(rule, slot, table, fields)

    def _with_frames(self, element: Element) -> Iterator[Element]:
        """Yield the elements of a message; a rule that contains frames is expanded."""
        items = element.items if isinstance(element, Concatenation) else (element,)
        for item in items:
            rule = self.grammar.find(item) if isinstance(item, Reference) else None
            inner = rule.definition if rule and not self._is_frame_rule(rule) else None
            if isinstance(inner, Concatenation) and any(map(self._begins_frame, inner.items)):
                yield from self._with_frames(inner)
            else:
                yield item

    def _begins_frame(self, element: Element) -> bool:
        """Whether an element of a message is a ZeroMQ frame, or an option or a group that begins with one."""
        return any(self._is_frame(slot.element) for slot in open_slots(element))

    def _frames(
        self, rule: Rule, slot: Slot, repetition: Repetition, following: Slot | None, fields: FieldReader
    ) -> ir.Stack | ir.Rest:
        """Return the part of ``*identity delimiter``, or else of all remaining frames."""
        if following is not None and not following.optional:
            delimiter = self._delimiter(following.element)
            if delimiter is not None:
                return fields.stack(None, repetition, ir.Always(), delimiter)
        if following is not None:
            empty = self.reader.octets.constant(following.element) == b""
            self._unsupported(
                rule,
                following,
                "any number of frames before other elements",
                f"if '{following.element}' is a frame, write frame = true under [types.{following.element}]"
                if empty
                else "",
            )
        named = self.grammar.find(slot.element) if isinstance(slot.element, Reference) else None
        return ir.Rest(named.name if named else str(repetition.element), fields.rest(named, repetition))

    def _part(self, rule: Rule, slot: Slot, table: MessageTable, fields: FieldReader) -> Iterator[ir.Part]:
        for element in (slot.element, *slot.alternatives):
            if not isinstance(element, Reference):
                self._unsupported(rule, slot, "an unnamed ZeroMQ frame")
                continue
            target = self.grammar.find(element)
            presence = self._presence(slot, element)
            if isinstance(presence, ir.Counted):
                self._check_counted(rule, slot)
            letter = table.letter.get(element.name)
            stack = self._stack(target.definition) if target else None
            if target and stack:
                yield fields.stack(target, stack[0], presence, stack[1], letter)
            else:
                yield ir.Frame(
                    element.name, tuple(self._frame(element, target, rule, fields)), presence, letter
                )

    def _check_counted(self, rule: Rule, slot: Slot) -> None:
        """Report optional frames that cannot be distinguished by their number."""
        if slot.alternatives:
            self._unsupported(rule, slot, "one of two frames, but no flag selects it")
        elif slot.tied:
            self._unsupported(rule, slot, "two frames that are optional together, but no flag announces them")
        elif slot.apart:
            self.diagnostics.warning(
                "W403",
                slot.element.span,
                f"'{slot.element}' is assumed to be present only if the option before it is",
                "write '[ first [ second ] ]', or name a flag under `presence` in the profile",
            )

    def _frame(
        self, element: Reference, target: Rule | None, rule: Rule, fields: FieldReader
    ) -> Iterator[ir.Field]:
        layout = self.reader.layout(target) if target else None
        match layout:
            case ChoiceLayout(rules=rules):
                chosen = next((found for found in rules if fold(found.name) == fold(rule.name)), None)
                if chosen is not None and chosen is not target:
                    yield from self._frame(element, chosen, rule, fields)
                else:
                    yield from fields.run((element,))
            case FieldsLayout(items=items):
                yield from fields.run(items)
            case ValueLayout() | None:
                yield from fields.run((element,))

    def _presence(self, slot: Slot, element: Reference) -> ir.Presence:
        bits = self.flags.announced.get(fold(element.name), 0)
        mask = bits
        for other in (*slot.alternatives, slot.element):
            if isinstance(other, Reference):
                mask |= self.flags.announced.get(fold(other.name), 0)
        if slot.optional:
            return ir.Announced(mask, bits) if bits else ir.Counted()
        return ir.Always(mask, bits)

    def _is_frame(self, element: Element) -> bool:
        match element:
            case Repetition(element=Reference() as inner, minimum=0, maximum=None):
                return self._is_frame(inner)
            case Reference():
                if self.grammar.external(element) == "frame" or self._repeated(element):
                    return True
                rule = self.grammar.find(element)
                return self._is_frame_rule(rule) if rule else self.reader.hint(element).frame
        return False

    def _repeated(self, element: Element) -> Repetition | None:
        """Return ``*frame`` if the element, or the rule it names, is that; else None."""
        seen: set[str] = set()
        while isinstance(element, Reference) and str(element) not in seen:
            seen.add(str(element))
            if self.grammar.external(element) == "messages":
                frame = Reference("frame", None, element.span)
                return Repetition(0, None, frame, element.span)
            rule = self.grammar.find(element)
            if rule is None:
                return None
            element = rule.definition
        if isinstance(element, Repetition) and self._is_frame(element):
            return element
        return None

    def _is_frame_rule(self, rule: Rule) -> bool:
        if self.reader.hint(rule).frame or FRAME_WORDS in self.reader.comment(rule).lower():
            return True
        if any(_CALLED_FRAME.search(comment.text) for comment in rule.leading):
            return True
        if self._stack(rule.definition):
            return True
        definition = rule.definition
        if not isinstance(definition, Reference):
            return False
        # Another name for a frame is a frame: `content = chunk`, `chunk = frame`.
        target = self.grammar.find(definition)
        return self.grammar.external(definition) == "frame" or (
            target is not None and target is not rule and self._is_frame_rule(target)
        )

    def _stack(self, definition: Element) -> tuple[Repetition, bytes] | None:
        """Return ``*identity`` and the delimiter of a rule ``*identity delimiter``, None for any other."""
        match definition:
            case Concatenation(items=(Repetition() as repetition, Reference() as last)):
                delimiter = self._delimiter(last)
                if delimiter is not None and self._is_frame(repetition):
                    return repetition, delimiter
        return None

    def _delimiter(self, element: Element) -> bytes | None:
        """Return the octets of a frame that is always the same; None for any other element."""
        return self.reader.octets.constant(element) if self._is_frame(element) else None

    def _unsupported(self, rule: Rule, slot: Slot, what: str, help: str = "") -> None:
        self.reader.fault(
            "E405",
            slot.element.span,
            f"message '{rule}' has {what}",
            help
            or "specwire cannot express that; if another rule has the same octets, write it under "
            "[[rules]] in the profile",
        )


def _distinct(parts: Sequence[ir.Part], rule: Rule, diagnostics: Diagnostics) -> tuple[ir.Part, ...]:
    """Return the parts with fields whose names differ in the whole message."""
    fields = [
        field for part in parts for field in (part.fields if isinstance(part, ir.Frame) else (part.field,))
    ]
    named = iter(distinct(fields, rule, diagnostics))
    return tuple(
        msgspec.structs.replace(part, fields=tuple(next(named) for _ in part.fields))
        if isinstance(part, ir.Frame)
        else msgspec.structs.replace(part, field=next(named))
        for part in parts
    )


def _derived(reader: TypeReader, parts: Sequence[ir.Part], rule: Rule) -> tuple[ir.Part, ...]:
    """Return the parts with counters, checksums and trailers in their frames."""
    return tuple(
        msgspec.structs.replace(part, fields=derive_fields(reader, part.fields, rule))
        if isinstance(part, ir.Frame)
        else part
        for part in parts
    )
