"""Emitter of the compiled decoder and encoder of one message: its frames, and their flags."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from specwire.generator.emit.bodies import (
    Whole,
    constant_octets,
    first_slot,
    flags_slot,
    is_folded,
    whole_value,
)
from specwire.generator.emit.native_decoding import Reader
from specwire.generator.emit.native_encoding import Encoder
from specwire.generator.emit.native_names import Functions, literal, message_members
from specwire.generator.support import plan

# Decoding


def decode_message(message: plan.MessagePlan, functions: Functions) -> str:
    """Return the body of ``_decode_<message>(frames, count)``: the message, or None."""
    reader = _MessageReader(functions, message_members(message))
    reader.message(message)
    reader.add("return made")
    return reader.source()


def take_frames(body: plan.Body, functions: Functions, delimiter: bytes | None) -> str:
    """Return the body of ``_take_<frames>(frames, place, stop)``: a tuple, or None."""
    reader = _MessageReader(functions, {})
    items, frame = reader.local("items", "list"), reader.local("frame", "bytes")
    if delimiter is None:
        # Usually there are no frames; then no list is created.
        with reader.block("if place[0] == stop:"):
            reader.add("return ()")
    reader.add(f"{items} = []")
    with reader.block("while place[0] < stop:"):
        reader.frame("place[0]", body=None)
        reader.add("place[0] += 1")
        if delimiter is not None:
            with reader.block(f"if {_is_delimiter(frame, delimiter)}:"):
                reader.add(f"return tuple({items})")
        reader.content(body)
        if delimiter is not None and isinstance(body[0], plan.TakeText) and body[0].terminated:
            # The delimiter and a NUL: encoded without the NUL, the frame would be the delimiter.
            reader.refuse_if(f"item.encode() == {literal(delimiter)}" if delimiter else "not item")
        reader.add(f"{items}.append(item)")
    reader.add(f"return tuple({items})" if delimiter is None else "return None")
    return reader.source()


class _MessageReader(Reader):
    """Statements that take the frames of one message."""

    def message(self, message: plan.MessagePlan) -> None:
        """Take all parts; first the certain ones, which determine the others."""
        parts = message.parts
        certain = [_is_certain(part) for part in parts]
        made = f"cdef {message.class_name} made = {message.class_name}.__new__({message.class_name})"
        if all(found or _is_rest(part) for found, part in zip(certain, parts, strict=True)):
            rests = any(map(_is_rest, parts))
            self.refuse_if(f"count < {len(parts) - 1}" if rests else f"count != {len(parts)}")
            self.add(made)
            self._all_there(parts)
            self._check_flags(parts)
            return
        self.add(made)
        first, tail = certain.index(False), len(parts)
        while certain[tail - 1]:
            tail -= 1
        for position in [*range(first), *range(tail, len(parts))]:
            index = str(position) if position < first else f"count - {len(parts) - position}"
            self.frame(index, parts[position].body)
        self._check_flags(parts)
        self._uncertain(parts[first:tail], first, len(parts) - tail)

    def _all_there(self, parts: Sequence[plan.Part]) -> None:
        behind = False
        for position, part in enumerate(parts):
            from_end = len(parts) - position
            if isinstance(part, plan.ManyFrames):
                self.add(f"{self.local('at', 'Py_ssize_t')} = {position}")
                self._take_many(part, f"count - {from_end - 1}" if from_end > 1 else "count")
                behind = True
            else:
                self.frame(f"count - {from_end}" if behind else str(position), part.body)

    def _uncertain(self, parts: Sequence[plan.Part], first: int, behind: int) -> None:
        """Take parts that may be absent; `first` frames precede them and `behind` follow."""
        at = self.local("at", "Py_ssize_t")
        self.add(f"{at} = {first}")
        for position, part in enumerate(parts, 1):
            presence = part.presence
            after = behind + sum(_is_required(later) for later in parts[position:])
            match presence.kind:
                case "announced":
                    with self.block(f"if flags & 0x{presence.mask:02x} == 0x{presence.value:02x}:"):
                        self._next(part)
                case "counted":
                    with self.block(f"if {at} < count - {after}:" if after else f"if {at} < count:"):
                        self._next(part)
                case "always":
                    self._next(part, f"count - {behind}" if _is_rest(part) and behind else "count")
        self.refuse_if(f"{at} + {behind} != count" if behind else f"{at} != count")

    def _next(self, part: plan.Part, stop: str = "count") -> None:
        if isinstance(part, plan.ManyFrames):
            self._take_many(part, stop)
        else:
            self.frame("at", part.body)
            self.add("at += 1")

    def _take_many(self, part: plan.ManyFrames, stop: str) -> None:
        name = self.functions.many[part.delimiter, part.body]
        self.take(part.slot, f"_take_{name}(frames, &at, {stop})")

    def _check_flags(self, parts: Sequence[plan.Part]) -> None:
        """Check for bits of parts that the message lacks, and for bits that belong together."""
        announcing = self.functions.announcing
        if not announcing or "flags" not in self.variables:
            return
        groups, absent = plan.flag_values(parts, announcing)
        for mask, found in groups.items():
            if found != {0, mask} or mask & (mask - 1):
                wanted = ", ".join(map(str, sorted(found)))
                self.refuse_if(f"flags & 0x{mask:02x} not in ({wanted},)")
        if absent:
            self.refuse_if(f"flags & 0x{absent:02x}")

    def frame(self, index: str, body: plan.Body | None) -> None:
        """Take a frame into the variable ``frame``, and its content."""
        if body is not None and self._simple(index, body):
            return
        frame = self.local("frame", "bytes")
        self.add(f"{frame} = frame_at(frames, {index})")
        self.refuse_if(f"{frame} is None")
        if body is not None:
            self.content(body)

    def _simple(self, index: str, body: plan.Body) -> bool:
        """Take a frame that is constant, a text or octets of any number; return False for any other."""
        octets, op = constant_octets(body), whole_value(body)
        if octets is not None and not is_folded(body):
            self.refuse_if(f"not constant_at(frames, {index}, {literal(octets)}, {len(octets)})")
            return True
        if isinstance(op, plan.TakeText):
            self.take(op.slot, f"text_at(frames, {index}, {op.terminated})")
            return True
        if isinstance(op, plan.TakeOctets) and not op.minimum and op.maximum is None:
            self.take(op.slot, f"frame_at(frames, {index})")
            return True
        return False

    def content(self, body: plan.Body) -> None:
        """Read the octets of the variable ``frame``."""
        op = whole_value(body)
        if isinstance(op, plan.TakeOctets):
            self.check_octets(op, "len(frame)")
            self.take(op.slot, "frame", fallible=False)
            return
        self.add(f"{self.local('run', 'Run')} = run_of(frame)")
        self.body(body)
        self.refuse_if("run.at != run.end")


# Encoding


def encode_message(message: plan.MessagePlan, functions: Functions) -> str:
    """Return the body of the method ``frames__``, without the check for other messages' octets."""
    encoder = _MessageEncoder(functions, message_members(message), refusal="None", indent=2)
    encoder.message(message)
    return encoder.source()


class _MessageEncoder(Encoder):
    """Statements that build the list ``made`` of the frames of one message."""

    def message(self, message: plan.MessagePlan) -> None:
        """Append the frames of all parts."""
        parts = message.parts
        self._exclusive(parts)
        self._flags(message)
        made = self.local("made", "list")
        constant = [_constant(part) for part in parts]
        if None not in constant:
            frames = ", ".join(literal(octets) for octets in constant if octets is not None)
            self.add(f"{made} = [{frames}]")
        elif len(parts) == 1 and isinstance(parts[0], plan.OneFrame):
            self.frame(parts[0].body)
            self.add(f"{made} = [frame]")
        else:
            first = list(takewhile(lambda octets: octets is not None, constant))
            self.add(f"{made} = [{', '.join(literal(octets) for octets in first if octets is not None)}]")
            before = ""
            for part in parts[len(first) :]:
                before = self._part(part, before)

    def _exclusive(self, parts: Sequence[plan.Part]) -> None:
        """Check that two readings of one frame are not both present."""
        groups: dict[int, list[str]] = {}
        for part in parts:
            if isinstance(part, plan.OneFrame) and part.presence.kind == "announced":
                groups.setdefault(part.presence.mask, []).append(first_slot(part))
        for names in groups.values():
            if len(names) > 1:
                self.refuse_if(" and ".join(f"self._{name} is not None" for name in names))

    def _flags(self, message: plan.MessagePlan) -> None:
        """Add the bits that announce the parts present."""
        announcing = self.functions.announcing
        if not announcing or not flags_slot(message):
            return
        flags = self.local("flags", "uint64_t")
        self.add(f"{flags} = self._{flags_slot(message)}")
        self.refuse_if(f"{flags} & 0x{announcing:02x}")
        for part in message.parts:
            if not (value := part.presence.value):
                continue
            if part.presence.kind == "always":
                self.add(f"{flags} |= 0x{value:02x}")
                continue
            with self.block(f"if self._{first_slot(part)} is not None:"):
                self.add(f"{flags} |= 0x{value:02x}")

    def _part(self, part: plan.Part, before: str) -> str:
        """Append the frames of a part; return the condition that an optional part is absent."""
        if part.presence.kind == "always":
            self._append(part)
            return before
        value = f"self._{first_slot(part)}"
        counted = part.presence.kind == "counted"
        with self.block(f"if {value} is not None:"):
            if before and counted:
                self.refuse_if(before)
            self._append(part)
        return f"{value} is None" if counted else before

    def _append(self, part: plan.Part) -> None:
        if isinstance(part, plan.ManyFrames):
            self._append_many(part)
            return
        octets, op = _constant(part), whole_value(part.body)
        if octets is not None:
            self.add(f"made.append({literal(octets)})")
        elif isinstance(op, plan.TakeText):
            self.refuse_if(f"not append_text(made, {self.value(op.slot)}, {op.terminated})")
        elif isinstance(op, plan.TakeOctets) and not op.minimum and op.maximum is None:
            self.refuse_if(f"not append_octets(made, {self.value(op.slot)})")
        else:
            self.frame(part.body)
            self.add("made.append(frame)")

    def _append_many(self, part: plan.ManyFrames) -> None:
        value, item = f"self._{part.slot}", self.local("item", "object")
        self.refuse_if(f"type({value}) is not tuple")
        with self.block(f"for {item} in <tuple>{value}:"):
            self.frame(part.body)
            if part.delimiter is not None:
                self.refuse_if(_is_delimiter("frame", part.delimiter))
            self.add("made.append(frame)")
        if part.delimiter is not None:
            self.add(f"made.append({literal(part.delimiter)})")

    def frame(self, body: plan.Body) -> None:
        """Build the octets of one frame in the variable ``frame``."""
        frame = self.local("frame", "bytes")
        if whole := whole_value(body):
            self._whole(whole)
        elif (
            (fixed := body[0]) and isinstance(fixed, plan.Fixed) and len(body) == 1 and self._is_plain(fixed)
        ):
            self.add(f"{frame} = bytes_of(NULL, {fixed.octets})")
            self.add(f"{self.local('start', 'uint8_t*')} = <uint8_t*>octets_of({frame})")
            self.in_place(fixed, "start")
        else:
            self.add(f"begin(&{self.local('out', 'Writer')})")
            self.refusal = "drop(&out)"
            self.whole(body)
            self.refusal = "None"
            self.add(f"{frame} = finish(&out)")
            self.refuse_if(f"{frame} is None")

    def _is_plain(self, op: plan.Fixed) -> bool:
        """Return whether operations only write constants, bits and C integers."""
        for inner in op.body:
            match inner:
                case plan.Expect() | plan.Pad():
                    continue
                case plan.Number(bits=bits) if bits and not any(bit.counts for bit in bits):
                    continue
                case plan.Number(slot=slot) if slot in self.members and self.members[slot].range:
                    continue
            return False
        return True

    def _whole(self, op: Whole) -> None:
        """Build a frame from the value that fills it."""
        frame, value = "frame", self.value(op.slot)
        if isinstance(op, plan.TakeText):
            self.add(f"{frame} = frame_of_{'terminated' if op.terminated else 'text'}({value})")
            self.refuse_if(f"{frame} is None")
            return
        if isinstance(op, plan.Word):
            for octets in self.words(op):
                self.add(f"{frame} = {literal(octets)}")
            return
        self.refuse_if(f"type({value}) is not bytes")
        self.add(f"{frame} = <bytes>{value}")
        self.check_octets(op, f"len({frame})")


# Parts


def _is_delimiter(frame: str, delimiter: bytes) -> str:
    """Return the condition that a frame is the delimiter."""
    return f"frame_is({frame}, {literal(delimiter)}, {len(delimiter)})" if delimiter else f"not len({frame})"


def _is_rest(part: plan.Part) -> bool:
    return isinstance(part, plan.ManyFrames) and not part.delimited


def _is_required(part: plan.Part) -> bool:
    """Return whether every message has a frame of a part."""
    return part.presence.kind == "always" and not _is_rest(part)


def _is_certain(part: plan.Part) -> bool:
    """Return whether a part is always one frame at a fixed index, independent of flags."""
    return isinstance(part, plan.OneFrame) and part.presence.kind == "always" and not part.presence.mask


def _constant(part: plan.Part) -> bytes | None:
    """Return the octets of a part that is always the same frame; None for any other part."""
    always = isinstance(part, plan.OneFrame) and part.presence.kind == "always"
    return constant_octets(part.body) if always else None
