"""Message rules to ordered ZeroMQ frames and the fields in them.

A message rule is a concatenation. Elements that are ZeroMQ frames of their own (``FRAME``, a rule whose
comment says so, a rule that the profile declares to be one) become frames; a run of other elements in
front of them is one frame with a field for each element (FILEMQ's CHEEZBURGER: a header frame, then the
chunk). ``*identity delimiter`` is a stack of routes, ``*more`` at the end all the frames that are left.

An optional part is announced by a flag (`presence`), or, at the end of the message, told by the number
of frames. A frame whose rule is a choice among rules (Flux's ``PROTO``) takes the one that is named as
the message is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from specwire.generator import ir
from specwire.generator.names import class_name
from specwire.generator.passes.fields import FieldReader
from specwire.generator.passes.octets import constant_of
from specwire.generator.passes.presence import Flags
from specwire.generator.passes.types import ChoiceLayout, FieldsLayout, TypeReader, ValueLayout
from specwire.generator.profile import MessageTable
from specwire.generator.syntax import Alternation, Concatenation, Element, Option, Reference, Repetition, Rule

FRAME_WORDS = "zeromq frame"
"""In the comment of a rule: the rule is a frame of its own."""


@dataclass(frozen=True, slots=True)
class Slot:
    """One element of a message rule, options opened: what stands there, and whether it may be absent."""

    element: Element
    optional: bool
    alternatives: tuple[Element, ...] = ()
    """The other readings of the same frame (``[payload / json]``)."""


class MessageReader:
    """Lays out messages one by one; faults are E4xx diagnostics and leave the message out."""

    def __init__(self, reader: TypeReader, flags: Flags) -> None:
        self.reader = reader
        self.flags = flags
        self.grammar = reader.grammar
        self.diagnostics = reader.diagnostics

    def message(self, rule: Rule, senders: tuple[str, ...]) -> ir.Message:
        """Return the message of `rule`; its tags are found later, when all messages are known."""
        table = self.reader.profile.profile.message.get(str(rule), MessageTable())
        fields = FieldReader(self.reader, rule, table)
        parts = tuple(self._parts(rule, table, fields))
        fields.check(parts)
        return ir.Message(
            name=rule.name,
            rule=str(rule),
            class_name=class_name(rule.name),
            doc=" ".join(comment.text for comment in rule.leading).strip(),
            line=rule.published_line,
            senders=senders,
            parts=fields.settle(parts),
            tags=(),
        )

    def _parts(self, rule: Rule, table: MessageTable, fields: FieldReader) -> Iterator[ir.Part]:
        slots = list(_slots(rule.definition))
        inline = [slot for slot in slots if not self._is_frame(slot.element)]
        if inline and slots[: len(inline)] == inline:
            yield ir.Frame(rule.name, tuple(fields.run([slot.element for slot in inline])))
        elif inline:
            self._unsupported(rule, "an element after a ZeroMQ frame that is no frame itself")
        index = len(inline)
        while index < len(slots):
            slot = slots[index]
            following = slots[index + 1].element if index + 1 < len(slots) else None
            if (
                isinstance(slot.element, Repetition)
                and following is not None
                and self._is_delimiter(following)
            ):
                yield fields.stack(None, slot.element, ir.Always())
                index += 2
                continue
            if isinstance(slot.element, Repetition) and following is not None:
                self._unsupported(rule, "frames of any number in the middle of a message")
            yield from self._part(rule, slot, table, fields)
            index += 1

    def _part(self, rule: Rule, slot: Slot, table: MessageTable, fields: FieldReader) -> Iterator[ir.Part]:
        if isinstance(slot.element, Repetition):
            yield ir.Rest(str(slot.element.element), fields.rest(slot.element))
            return
        for element in (slot.element, *slot.alternatives):
            if not isinstance(element, Reference):
                self._unsupported(rule, "an unnamed ZeroMQ frame")
                continue
            target = self.grammar.find(element)
            presence = self._presence(slot, element)
            letter = table.letter.get(element.name)
            stack = _stack(target.definition) if target else None
            if target and stack:
                yield fields.stack(target, stack, presence, letter)
            else:
                yield ir.Frame(
                    element.name, tuple(self._frame(element, target, rule, fields)), presence, letter
                )

    def _frame(
        self, element: Reference, target: Rule | None, rule: Rule, fields: FieldReader
    ) -> Iterator[ir.Field]:
        layout = self.reader.layout(target) if target else None
        match layout:
            case ChoiceLayout(rules=rules):
                chosen = next((found for found in rules if found.name.lower() == rule.name.lower()), None)
                if chosen is None:
                    names = ", ".join(str(found) for found in rules)
                    self.diagnostics.error(
                        "E404",
                        element.span,
                        f"'{element}' is one of {names}, and none is named as '{rule}' is",
                    )
                    return
                yield from self._frame(element, chosen, rule, fields)
            case FieldsLayout(items=items):
                yield from fields.run(items)
            case ValueLayout() | None:
                yield from fields.run((element,))

    def _presence(self, slot: Slot, element: Reference) -> ir.Presence:
        bits = self.flags.announced.get(element.name, 0)
        mask = bits
        for other in (*slot.alternatives, slot.element):
            if isinstance(other, Reference):
                mask |= self.flags.announced.get(other.name, 0)
        if slot.optional:
            return ir.Announced(mask, bits) if bits else ir.Counted()
        return ir.Always(mask, bits)

    def _is_frame(self, element: Element) -> bool:
        match element:
            case Repetition(element=inner, minimum=0, maximum=None):
                return isinstance(inner, Reference) and self._is_frame(inner)
            case Reference():
                if self.grammar.external(element) == "frame":
                    return True
                rule = self.grammar.find(element)
                return rule is not None and self._is_frame_rule(rule)
        return False

    def _is_frame_rule(self, rule: Rule) -> bool:
        if self.reader.hint(rule).frame or FRAME_WORDS in self.reader.comment(rule).lower():
            return True
        if _stack(rule.definition):
            return True
        definition = rule.definition
        return isinstance(definition, Reference) and self.grammar.external(definition) == "frame"

    def _is_delimiter(self, element: Element) -> bool:
        return constant_of(element, self.grammar) == b"" and self._is_frame(element)

    def _unsupported(self, rule: Rule, what: str) -> None:
        self.diagnostics.error("E405", rule.name_span, f"message '{rule}' has {what}, which has no layout")


def _slots(element: Element) -> Iterator[Slot]:
    """Yield the elements of a message rule in order, with options opened."""
    match element:
        case Concatenation(items=items):
            for item in items:
                yield from _slots(item)
        case Option(element=Alternation(items=(first, *others))):
            yield Slot(first, True, tuple(others))
        case Option(element=inner):
            for slot in _slots(inner):
                yield Slot(slot.element, True, slot.alternatives)
        case _:
            yield Slot(element, False)


def _stack(definition: Element) -> Repetition | None:
    """Return ``*identity`` of a rule ``*identity delimiter``, None for any other."""
    match definition:
        case Concatenation(items=(Repetition(minimum=0, maximum=None) as repetition, Reference())):
            return repetition if isinstance(repetition.element, Reference) else None
    return None
