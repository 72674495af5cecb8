"""Emitter of the fast encoders: straight-line code from messages to frames, spelled from the plan.

Values that `struct` and `str` refuse need no check. Values that they accept but that would decode
differently, such as a NUL or an ``=`` in a name, are checked. A value that does not fit raises any
exception that ``encode`` catches. `specwire.generator.emit.encoding_body` emits the values inside a
frame or record.
"""

from __future__ import annotations

from specwire.generator import ir
from specwire.generator.emit.bodies import (
    Whole,
    constant_octets,
    first_slot,
    flags_slot,
    record_function,
    strict_matters,
    whole_value,
)
from specwire.generator.emit.encoding_body import BodyEncoder
from specwire.generator.emit.encoding_pieces import Encoder
from specwire.generator.emit.python import Lines, octets_literal
from specwire.generator.plan.layouts import announcing_bits
from specwire.generator.support.plan import (
    Choose,
    ManyFrames,
    MessagePlan,
    Number,
    OneFrame,
    Part,
    Plan,
    RecordPlan,
    TakeOctets,
    TakeText,
    Word,
    operations,
)


def encode_body(
    message: ir.Message, plan: MessagePlan, protocol: ir.Protocol, whole: Plan
) -> tuple[str, dict[str, str]]:
    """Return the statements that assign ``frames``, and the struct objects that they use."""
    encoder = Encoder(message.name, message.fields, protocol, whole)
    _Frames(encoder, plan).message()
    return str(encoder.lines), encoder.structs


def record_writer(
    record: ir.RecordType, plan: RecordPlan, protocol: ir.Protocol, whole: Plan
) -> tuple[str, dict[str, str]]:
    """Return the body of ``_write_<record>(record)``, which returns its octets, and its struct
    objects.

    Further parameters are `strict`, if it matters, and `depth`, if records can contain themselves.
    """
    encoder = Encoder(record.class_name, record.fields, protocol, whole)
    encoder.lines = Lines(1)
    encoder.refuse_if(f"not isinstance(record, {record.class_name})", "TypeError")
    owner, depth = encoder.names.local("record"), encoder.names.local("depth")
    if owner != "record":
        encoder.lines.add(f"{owner} = record")
    if whole.max_depth:
        encoder.refuse_if(f"depth == {whole.max_depth}")
        encoder.lines.add(*[f"{depth} = depth"] * (depth != "depth"))
        encoder.depth = f"{depth} + 1"
    expression = BodyEncoder(encoder, owner).expression(plan.body)
    encoder.lines.add(f"return {expression}")
    return str(encoder.lines), encoder.structs


def choice_writer(choice: Choose, whole: Plan) -> str:
    """Return the body of ``_write_<choice>(record)``, which writes each option by its class."""
    lines = Lines(1)
    more = (", strict" if strict_matters(whole) else "") + (", depth" if whole.max_depth else "")
    for _, record in choice.options:
        with lines.block(f"if isinstance(record, {record}):"):
            lines.add(f"return _write_{record_function(record)}(record{more})")
    lines.add("raise TypeError")
    return str(lines)


class _Frames:
    """Encoder of the frames of one message."""

    def __init__(self, encoder: Encoder, plan: MessagePlan) -> None:
        self.encoder = encoder
        self.lines = encoder.lines
        self.parts = plan.parts
        self.flags = flags_slot(plan)
        announced = [at for at, part in enumerate(plan.parts) if part.presence.mask]
        flags = next((at for at, part in enumerate(plan.parts) if self.flags and _has_flags(part)), -1)
        self.flags_first = flags in range(max(announced, default=0))

    def message(self) -> None:
        """Add the statements that assign ``frames``."""
        announcing = announcing_bits(self.encoder.protocol)
        if self.flags and announcing:
            self.lines.add(f"flags = self.{self.flags}")
            self.encoder.refuse_if(f"flags & 0x{announcing:02x}")
        self._exclusive()
        if all(
            isinstance(p, OneFrame) and p.presence.kind == "always" and not p.presence.mask
            for p in self.parts
        ):
            frames = [self._frame(part) for part in self.parts if isinstance(part, OneFrame)]
            self.lines.add(f"frames = [{', '.join(frames)}]")
            return
        if self.flags_first:
            for part in self.parts:
                self._flag(part)
        self.lines.add("frames: list[bytes] = []")
        before = ""
        for part in self.parts:
            before = self._part(part, before)

    def _exclusive(self) -> None:
        """Check that two readings of one frame are not both present."""
        groups: dict[int, list[str]] = {}
        for part in self.parts:
            if isinstance(part, OneFrame) and part.presence.kind == "announced":
                groups.setdefault(part.presence.mask, []).append(first_slot(part))
        for names in groups.values():
            if len(names) > 1:
                self.encoder.refuse_if(" and ".join(f"self.{name} is not None" for name in names))

    def _part(self, part: Part, before: str) -> str:
        """Append the frames of a part; return the condition that an optional part is absent."""
        if part.presence.kind == "always":
            self._set_bits(part)
            self._append(part)
            return before
        name = f"self.{first_slot(part)}"
        if part.presence.kind == "counted":
            if before:
                self.encoder.refuse_if(f"{name} is not None and {before}")
            with self.lines.block(f"if {name} is not None:"):
                self._append(part)
            return f"{name} is None"
        with self.lines.block(f"if {_is_present(part)}:"):
            self._set_bits(part)
            self._append(part)
        return before

    def _flag(self, part: Part) -> None:
        """Set the bits that announce a part before any frame is written."""
        if part.presence.kind == "always" and part.presence.value:
            self.lines.add(f"flags |= 0x{part.presence.value:02x}")
        elif part.presence.kind == "announced":
            with self.lines.block(f"if {_is_present(part)}:"):
                self.lines.add(f"flags |= 0x{part.presence.value:02x}")

    def _set_bits(self, part: Part) -> None:
        """Set the bits that announce a part whose frame is written next, if the flags come
        later."""
        if part.presence.value and not self.flags_first:
            self.lines.add(f"flags |= 0x{part.presence.value:02x}")

    def _append(self, part: Part) -> None:
        if isinstance(part, OneFrame):
            self.lines.add(f"frames.append({self._frame(part)})")
            return
        if part.delimiter is None:
            self._items(part)
            return
        delimiter, frames = octets_literal(part.delimiter), "frames"
        if part is not self.parts[0]:
            begin = self.encoder.names.fresh("begin", "int")
            self.lines.add(f"{begin} = len(frames)")
            frames = f"frames[{begin}:]"
        self._items(part)
        self.encoder.refuse_if(f"{delimiter} in {frames}")
        self.lines.add(f"frames.append({delimiter})")

    def _items(self, part: ManyFrames) -> None:
        """Add the frames of many values; another check ensures that those of a stack are not
        empty."""
        name, value = f"self.{part.slot}", whole_value(part.body)
        assert value is not None
        least = 1 if part.delimiter == b"" else 0
        self.encoder.tuple_only(name)
        if isinstance(value, TakeOctets) and (value.minimum > least or value.maximum is not None):
            items = self.encoder.names.fresh("items", "list[bytes]")
            self.lines.add(f"{items} = [as_octets(item) for item in {name}]")
            if value.minimum > least:
                self.encoder.refuse_if(f"any(len(item) < {value.minimum} for item in {items})")
            if value.maximum is not None:
                self.encoder.refuse_if(f"any(len(item) > {value.maximum} for item in {items})")
            self.lines.add(f"frames += {items}")
            return
        self.lines.add(f"frames += {_converted(value, name)}")

    def _frame(self, part: OneFrame) -> str:
        """Return the expression for the octets of one frame, after adding the statements it
        needs."""
        constant = constant_octets(part.body)
        if constant is not None:
            return octets_literal(constant)
        if value := whole_value(part.body):
            return self._whole(value)
        return BodyEncoder(self.encoder, "self").expression(part.body)

    def _whole(self, value: Whole) -> str:
        """Return the expression for a value that fills its frame."""
        name = f"self.{value.slot}"
        # Check the type: objects other than str, such as messages, may have an ``encode`` method, too.
        text = f"str.encode({name})"
        match value:
            case Word(options=options):
                self.encoder.refuse_if(f"{name} not in {options!r}")
                return text
            case TakeText(terminated=terminated):
                return f"terminated({name}, strict)" if terminated else text
            case TakeOctets(minimum=0, maximum=None):
                return f"{name} if type({name}) is bytes else as_octets({name})"
            case TakeOctets(minimum=minimum, maximum=maximum):
                octets = self.encoder.names.fresh("octets", "bytes")
                self.lines.add(f"{octets} = as_octets({name})")
                if minimum:
                    self.encoder.refuse_if(f"len({octets}) < {minimum}" if minimum > 1 else f"not {octets}")
                if maximum is not None:
                    self.encoder.refuse_if(f"len({octets}) > {maximum}")
                return octets


def _has_flags(part: Part) -> bool:
    return any(isinstance(op, Number) and op.flags for op in operations(part.body))


def _is_present(part: Part) -> str:
    """Return the condition that an announced part is present."""
    name = f"self.{first_slot(part)}"
    if isinstance(part, ManyFrames) and part.letter == "forbidden":
        return f"{name} is not None and ({name} != () or not strict)"
    return f"{name} is not None"


def _converted(value: Whole, items: str) -> str:
    """Return the expression for the frames of the values `items`."""
    match value:
        case TakeText(terminated=True):
            return f"[terminated(item, strict) for item in {items}]"
        case TakeText():
            return f"map(str.encode, {items})"
    return f"[as_octets(item) for item in {items}]"
