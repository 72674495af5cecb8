"""Emitter of the fast decoders: straight-line code from frames to messages, spelled from the plan.

Each run of fixed size is one `struct` unpack. Constants that the dispatch has compared are skipped.
Length checks are postponed to a single check at the end where possible. A decoder only detects that
something is wrong, by any exception that `decode` catches. The slow path finds out what.

The frame of a value may be a view if the caller wants no copies; octets keep the type of the frame.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeGuard

from specwire.generator import ir
from specwire.generator.emit.bodies import (
    Whole,
    constant_octets,
    first_slot,
    flags_slot,
    holds_octets,
    lends_slices,
    record_function,
    value_annotation,
    whole_value,
)
from specwire.generator.emit.decoding_body import BodyDecoder
from specwire.generator.emit.decoding_runs import Decoder, drop_nul
from specwire.generator.emit.local_names import LocalNames
from specwire.generator.emit.python import Lines, octets_literal
from specwire.generator.plan.layouts import announcing_bits
from specwire.generator.support.plan import (
    ITEM,
    Body,
    Choose,
    Expect,
    Fixed,
    ManyFrames,
    MessagePlan,
    Number,
    OneFrame,
    Op,
    Part,
    Plan,
    RecordPlan,
    TakeOctets,
    TakeText,
    Word,
    flag_values,
    operations,
)


def decode_function(
    message: ir.Message, plan: MessagePlan, protocol: ir.Protocol, whole: Plan
) -> tuple[str, dict[str, str]]:
    """Return the body of ``_decode_<message>`` and the struct objects that it uses."""
    decoder = Decoder(message.name, message.fields, protocol, whole)
    _Frames(decoder, plan, lends=lends_slices(whole)).message()
    keywords = keyword_only(message)
    decoder.lines.add(f"return {_construction(decoder, message.class_name, keywords=keywords)}")
    return str(decoder.lines), decoder.structs


def record_reader(
    record: ir.RecordType, plan: RecordPlan, protocol: ir.Protocol, whole: Plan
) -> tuple[str, dict[str, str]]:
    """Return the body of ``_read_<record>(frame, at, stop)``, which returns the record and where it
    ends.

    The octets from `stop` on do not belong to the body that contains the record. If records can
    contain themselves, there is a fourth parameter `depth`.
    """
    decoder = Decoder(record.class_name, record.fields, protocol, whole)
    frame, at = decoder.names.local("frame"), decoder.names.local("at")
    stop, depth = decoder.names.fresh("stop", "int"), decoder.names.local("depth")
    for name, parameter in ((frame, "frame"), (at, "at"), (stop, "stop")):
        if name != parameter:
            decoder.lines.add(f"{name} = {parameter}")
    if whole.max_depth:
        decoder.refuse_if(f"depth == {whole.max_depth}")
        decoder.lines.add(*[f"{depth} = depth"] * (depth != "depth"))
        decoder.depth = f"{depth} + 1"
    end = BodyDecoder(decoder, frame, view=lends_slices(whole), base=at).record(plan.body, stop)
    made = _construction(decoder, record.class_name, keywords=keyword_only(record))
    decoder.lines.add(f"return {made}, {end}")
    return str(decoder.lines), decoder.structs


def choice_reader(choice: Choose, whole: Plan) -> str:
    """Return the body of ``_read_<choice>``, which has the parameters of `record_reader` and reads the
    option that the tag selects."""
    lines = Lines(1)
    depth = ", depth" if whole.max_depth else ""
    longest = max(len(tag) for tag, _ in choice.options)
    head = f"bytes(frame[at : min(at + {longest}, stop)])"
    lines.add(f"head = {head}.lower()" if choice.folded else f"head = {head}")
    for tag, record in choice.options:
        with lines.block(f"if head.startswith({octets_literal(tag)}):"):
            lines.add(f"return _read_{record_function(record)}(frame, at, stop{depth})")
    lines.add("raise ValueError")
    return str(lines)


def keyword_only(one: ir.Message | ir.RecordType) -> bool:
    """Return whether a field with a default precedes one without, which requires keyword-only
    arguments."""
    seen_default = False
    for found in one.fields:
        if found.implied:
            continue
        if found.required and seen_default:
            return True
        seen_default = seen_default or not found.required
    return False


def kept_heads(protocol: ir.Protocol, plan: Plan) -> tuple[int, ...]:
    """Return the indices of frames that identify the message and are therefore always bytes.

    Empty if one of them could contain octets.
    """
    if lends_slices(plan):
        return ()
    return tuple(selector.frame for selector in protocol.selectors if not selector.pattern)


def copy_parameter(message: ir.Message) -> str:
    """Return the name of the decoder's parameter that says whether to copy octets."""
    return LocalNames(field.attribute for field in message.fields).local("copy")


def _construction(decoder: Decoder, class_name: str, *, keywords: bool = False) -> str:
    """Return the expression that creates the message or record from its values."""
    fields = [f for f in decoder.fields if not f.implied]
    arguments = [decoder.values[f.attribute] for f in fields]
    if keywords:
        arguments = [f"{f.attribute}={value}" for f, value in zip(fields, arguments, strict=True)]
    return f"{class_name}({', '.join(arguments)})"


def _is_certain(part: Part) -> TypeGuard[OneFrame]:
    """Return whether a part is always one frame at a fixed index, independent of flags."""
    return isinstance(part, OneFrame) and part.presence.kind == "always" and not part.presence.mask


class _Frames:
    """Decoder of the frames of one message."""

    def __init__(self, decoder: Decoder, plan: MessagePlan, *, lends: bool) -> None:
        self.decoder = decoder
        self.lines = decoder.lines
        self.names = decoder.names
        self.values = decoder.values
        self.plan = plan
        self.parts = plan.parts
        self.lends = lends
        self.flags = flags_slot(plan)

    def message(self) -> None:
        """Decode all parts."""
        if all(_is_certain(part) or _is_rest(part) for part in self.parts):
            self._unpack_frames()
        else:
            self._walk_frames()

    def _unpack_frames(self) -> None:
        """Unpack frames that are always present: one assignment unpacks them and checks their
        number."""
        names: list[str] = []
        for position, part in enumerate(self.parts):
            if isinstance(part, ManyFrames):
                names.append(f"*{part.slot}")
            elif constant_octets(part.body) is not None and self._compared(position) is None:
                names.append("_")
            elif value := whole_value(part.body):
                names.append(value.slot)
            else:
                names.append(self.names.fresh("head" if len(self.parts) > 1 else "frame", "frame"))
        target = f"({names[0]},)" if len(names) == 1 else ", ".join(names)
        self.lines.add(f"{target} = frames")
        for position, (part, name) in enumerate(zip(self.parts, names, strict=True)):
            if isinstance(part, ManyFrames):
                self._check_items(part, part.slot)
                self.values[part.slot] = _items(part, part.slot)
            elif name != "_":
                self._frame(part, name, self._compared(position))
        self._check_flags()

    def _walk_frames(self) -> None:
        """Decode parts that may be absent: first the frames that determine presence, then the
        others in turn."""
        parts = self.parts
        first = next(i for i, part in enumerate(parts) if not _is_certain(part))
        tail = len(parts)
        while _is_certain(parts[tail - 1]):
            tail -= 1
        for position, part in [*enumerate(parts[:first]), *enumerate(parts[tail:], start=tail)]:
            assert isinstance(part, OneFrame)
            index = position if position < first else position - len(parts)
            compared = self._compared(position)
            if compared is not None or constant_octets(part.body) is None or position >= tail:
                self._frame(part, f"frames[{index}]", compared)
        in_turn = [part for part in parts[first:tail] if _has_flags(part)]
        if not in_turn:
            self._check_flags()
        if all(part.presence.kind == "counted" for part in parts[first:]):
            self._counted(first)
            return
        at = self.names.local("at")
        if first < tail:
            self.lines.add(f"{at} = {first}")
        for position, part in enumerate(parts[first:tail], start=first):
            after = sum(p.presence.kind == "always" and not _is_rest(p) for p in parts[position + 1 :])
            self._in_turn(part, at, after)
            if part in in_turn:
                self._check_flags()
        self.decoder.refuse_if(f"{at if first < tail else first} + {len(parts) - tail} != len(frames)")

    def _compared(self, position: int) -> int | None:
        """Return how many octets of the frame at `position` the dispatch has compared; None for
        all."""
        if self.decoder.protocol.folded and any(map(_is_exact, operations(self.parts[position].body))):
            return 0
        for selector in self.decoder.protocol.selectors:
            if selector.pattern:
                return _constants_in_front(self.parts[0]) if position == 0 else 0
            if position == selector.frame % len(self.parts):
                return selector.octets
        return 0

    # One frame

    def _frame(self, part: OneFrame, frame: str, compared: int | None) -> None:
        """Decode a frame that is always present."""
        if value := whole_value(part.body):
            self._whole(value, frame, compared)
            return
        constant = constant_octets(part.body)
        if constant is not None and not any(map(_is_folded, operations(part.body))):
            self.decoder.refuse_if(f"{frame} != {octets_literal(constant)}" if constant else frame)
            return
        heads = () if self.lends else self.decoder.protocol.selectors
        copied = compared != 0 and any(not selector.pattern for selector in heads)
        self._body(part.body, frame, compared or 0, copied=copied)

    def _body(
        self,
        body: Body,
        frame: str,
        compared: int,
        *,
        at: str = "",
        copied: bool = False,
        targets: Mapping[str, str] | None = None,
    ) -> None:
        """Decode the body of a frame: a view if it contains octets that are not copied, else bytes.

        A frame that is `copied` is already bytes.
        """
        view = holds_octets(body, self.decoder.records)
        unpacked_only = len(body) == 1 and isinstance(body[0], Fixed)
        if view or (not copied and not unpacked_only):
            if not frame.isidentifier():
                whole, frame = frame, self.names.fresh("head", "frame")
                self.lines.add(f"{frame} = {whole}")
            copy = self.names.local("copy")
            with self.lines.block(f"if not {copy}:" if view else f"if type({frame}) is not bytes:"):
                self.lines.add(f"{frame} = {'view_of' if view else 'bytes'}({frame})")
        decoder = BodyDecoder(self.decoder, frame, view=view, at=at, targets=targets)
        decoder.compared = decoder.known = compared
        decoder.run(body)

    def _whole(self, value: Whole, frame: str, compared: int | None) -> None:
        """Decode a value that fills its frame."""
        if not isinstance(value, Word) or compared is not None:
            for limit in _limits(value, frame):
                self.decoder.refuse_if(limit)
        if _terminated(value):
            self._assign_whole(value, value.slot, frame)
            self.values[value.slot] = value.slot
        else:
            self.values[value.slot] = _whole_source(value, frame)

    def _assign_whole(self, value: Whole, target: str, frame: str) -> None:
        """Assign a value that fills its frame to a variable."""
        if _terminated(value):
            self.lines.add(f"{target} = {_text(frame)}")
            drop_nul(self.lines, target)
        else:
            self.lines.add(f"{target} = {_whole_source(value, frame)}")

    def _inside(self, body: Body, slot: str, frame: str) -> str:
        """Decode an optional frame that its value does not simply fill; return the value.

        The value uses separate variable names, as the field's name holds the value or None.
        """
        value = self.names.fresh("value", value_annotation(body, slot))
        self._body(body, frame, 0, at=self.names.fresh("place", "int"), targets={slot: value})
        return self.values.pop(slot)

    # Parts that may be absent

    def _counted(self, first: int) -> None:
        """Decode frames that are present if there are enough."""
        count = self.names.local("total")
        self.lines.add(f"{count} = len(frames)")
        self.decoder.refuse_if(f"not {first} <= {count} <= {len(self.parts)}")
        for position, part in enumerate(self.parts[first:], start=first):
            assert isinstance(part, OneFrame)
            slot, frame = first_slot(part), f"frames[{position}]"
            value = whole_value(part.body)
            if value and not _limits(value, "frame"):
                self.values[slot] = f"{_whole_source(value, frame)} if {count} > {position} else None"
                continue
            self._declare(part, slot)
            with self.lines.block(f"if {count} > {position}:"), self.names.scope():
                if value:
                    for limit in _limits(value, frame):
                        self.decoder.refuse_if(limit)
                    self.lines.add(f"{slot} = {_whole_source(value, frame)}")
                else:
                    self.lines.add(f"{slot} = {self._inside(part.body, slot, frame)}")
            self.values[slot] = slot

    def _declare(self, part: Part, slot: str) -> None:
        kind = value_annotation(part.body, ITEM if isinstance(part, ManyFrames) else slot)
        kind = f"tuple[{kind}, ...]" if isinstance(part, ManyFrames) else kind
        self.lines.add(f"{slot}: {kind} | None = None")

    def _in_turn(self, part: Part, at: str, after: int) -> None:
        """Decode a part at the index in the variable `at`; at least `after` frames follow it."""
        constant = isinstance(part, OneFrame) and constant_octets(part.body) is not None
        if part.presence.kind == "always" or constant:
            self._next(part, "" if constant else first_slot(part), at)
            return
        slot = first_slot(part)
        mask, value = part.presence.mask, part.presence.value
        self._declare(part, slot)
        single = mask == value and not mask & (mask - 1)
        test = f"{self.flags} & 0x{mask:02x}{'' if single else f' == 0x{value:02x}'}"
        if part.presence.kind == "counted":
            test = f"{at} < len(frames)" + (f" - {after}" if after else "")
        with self.lines.block(f"if {test}:"), self.names.scope():
            self._next(part, slot, at)

    def _next(self, part: Part, slot: str, at: str) -> None:
        if isinstance(part, ManyFrames):
            self._stack(part, at)
        elif value := whole_value(part.body):
            for limit in _limits(value, f"frames[{at}]"):
                self.decoder.refuse_if(limit)
            self._assign_whole(value, slot, f"frames[{at}]")
        elif slot and part.presence.kind == "always":
            self._body(part.body, f"frames[{at}]", 0, at=self.names.fresh("place", "int"))
        elif slot:
            self.lines.add(f"{slot} = {self._inside(part.body, slot, f'frames[{at}]')}")
        else:
            self._frame(part, f"frames[{at}]", 0)
        if isinstance(part, OneFrame):
            self.lines.add(f"{at} += 1")
        if slot:
            self.values.setdefault(slot, slot)

    def _stack(self, part: ManyFrames, at: str) -> None:
        """Decode the frames up to the delimiter, or all that remain."""
        lines, name, end = self.lines, part.slot, self.names.local("end")
        if part.delimiter is None:
            self._check_items(part, f"frames[{at}:]")
            lines.add(f"{name} = {_items(part, f'frames[{at}:]')}", f"{at} = len(frames)")
            return
        lines.add(f"{end} = frames.index({octets_literal(part.delimiter)}, {at})")
        frames = f"frames[{at}:{end}]"
        self._check_items(part, frames, least=0 if part.delimiter else 1)
        value = whole_value(part.body)
        if value and _terminated(value):
            # Most stacks are empty, and a conversion of an empty slice costs time.
            lines.add(f"{name} = tuple([{_text('frame')} for frame in {frames}]) if {at} < {end} else ()")
            with lines.block(f'if {name} and "\\0" in "".join({name}):'):
                lines.add(f"{name} = tuple(map(without_nul, {name}))")
                # A frame of the delimiter and a NUL: encoded without it, it would end the stack.
                delimiter = part.delimiter.decode(errors="surrogateescape")
                self.decoder.refuse_if(f"{delimiter!r} in {name}")
        else:
            lines.add(f"{name} = {_items(part, frames)}")
        lines.add(f"{at} = {end} + 1")

    def _check_items(self, part: ManyFrames, frames: str, least: int = 0) -> None:
        """Refuse frames that are too short or too long; all have at least `least` octets."""
        value = whole_value(part.body)
        assert value is not None
        for limit in _limits(value, "frame", least):
            self.decoder.refuse_if(f"any({limit} for frame in {frames})")

    # Flags

    def _check_flags(self) -> None:
        """Check for bits of parts that the message lacks, and for bits that must be set
        together."""
        flags = self.flags
        groups, absent = flag_values(self.parts, announcing_bits(self.decoder.protocol))
        for mask, values in groups.items():
            several = mask & (mask - 1)
            if values == {mask}:
                test = f"{flags} & 0x{mask:02x} != 0x{mask:02x}" if several else f"not {flags} & 0x{mask:02x}"
                self.decoder.refuse_if(test)
            elif values != {0, mask} or several:
                self.decoder.refuse_if(f"{flags} & 0x{mask:02x} not in {tuple(sorted(values))!r}")
        if absent and flags:
            self.decoder.refuse_if(f"{flags} & 0x{absent:02x}")


def _is_rest(part: Part) -> bool:
    return isinstance(part, ManyFrames) and not part.delimited


def _is_folded(op: Op) -> bool:
    return isinstance(op, Expect | Word) and op.folded


def _is_exact(op: Op) -> bool:
    """Return whether an operation distinguishes letters of different case in constants."""
    match op:
        case Expect(octets=octets, folded=False):
            return octets.lower() != octets.upper()
        case Word(folded=False):
            return True
    return False


def _constants_in_front(part: Part) -> int:
    """Return the number of constant octets at the start of the first frame; patterns contain them
    all."""
    size = 0
    for op in operations(part.body):
        if not isinstance(op, Expect):
            break
        size += len(op.octets)
    return size


def _limits(value: Whole, frame: str, least: int = 0) -> list[str]:
    """Return the conditions that refuse octets or a word in `frame`, which has at least `least`
    octets."""
    match value:
        case Word(options=options, folded=False):
            return [f"{frame} not in {tuple(option.encode() for option in options)!r}"]
        case TakeOctets(minimum=minimum, maximum=maximum):
            short = f"len({frame}) < {minimum}" if minimum > 1 else f"not {frame}"
            return [short] * (minimum > least) + [f"len({frame}) > {maximum}"] * (maximum is not None)
    return []


def _has_flags(part: Part) -> bool:
    return any(isinstance(op, Number) and op.flags for op in operations(part.body))


def _terminated(value: Whole) -> bool:
    return isinstance(value, TakeText) and value.terminated


def _text(frame: str) -> str:
    return f'str({frame}, "utf-8")'


def _whole_source(value: Whole, frame: str) -> str:
    """Return the expression for a value that fills its frame."""
    if isinstance(value, TakeOctets):
        return frame
    if isinstance(value, Word) and value.folded:
        options = {option.encode().lower(): option for option in value.options}
        return f"{options!r}[bytes({frame}).lower()]"
    return f"without_nul({_text(frame)})" if _terminated(value) else _text(frame)


def _items(part: ManyFrames, frames: str) -> str:
    """Return the expression for the tuple of the frames of a part."""
    value = whole_value(part.body)
    assert value is not None
    if isinstance(value, TakeOctets):
        return f"tuple({frames})"
    return f"tuple([{_whole_source(value, 'frame')} for frame in {frames}])"
