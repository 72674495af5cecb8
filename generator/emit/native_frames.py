"""Emitter of the compiled decoder of one message: assignment of frames to parts, and flags."""

from __future__ import annotations

from collections.abc import Sequence

from specwire.generator import ir
from specwire.generator.emit.native_decoding import Reader
from specwire.generator.emit.native_types import Composite, literal
from specwire.generator.emit.python import announcing_bits


def many_frames(protocol: ir.Protocol) -> dict[tuple[str, ir.Type], str]:
    """Return the names of the functions for stacks and rests of frames, one for each kind."""
    found: dict[tuple[str, ir.Type], str] = {}
    for message in protocol.messages:
        for part in message.parts:
            if not isinstance(part, ir.Frame):
                kind = "stack" if isinstance(part, ir.Stack) else "rest"
                found.setdefault((kind, part.field.type), f"{kind}_{len(found) + 1}")
    return found


def decode_function(message: ir.Message, protocol: ir.Protocol, names: dict[Composite, str]) -> str:
    """Return the body of ``_decode_<message>(frames, count)``, which returns the message or None."""
    reader = Reader(protocol, names)
    _Frames(reader, message).message()
    reader.lines.add("return made")
    return reader.text()


class _Frames:
    """Parts of one message, in order."""

    def __init__(self, reader: Reader, message: ir.Message) -> None:
        self.reader = reader
        self.lines = reader.lines
        self.message_ = message
        self.many = many_frames(reader.protocol)

    def message(self) -> None:
        """Take all parts; first the certain ones, which determine the others."""
        parts = self.message_.parts
        name = self.message_.class_name
        certain = [_is_certain(part) for part in parts]
        if all(found or isinstance(part, ir.Rest) for found, part in zip(certain, parts, strict=True)):
            self._number(parts)
            self.lines.add(f"cdef {name} made = {name}.__new__({name})")
            self._all_there(parts)
            self._check_flags()
            return
        self.lines.add(f"cdef {name} made = {name}.__new__({name})")
        first, tail = certain.index(False), len(parts)
        while certain[tail - 1]:
            tail -= 1
        for position, part in [*enumerate(parts[:first]), *enumerate(parts[tail:], start=tail)]:
            self._certain(part, str(position) if position < first else f"count - {len(parts) - position}")
        self._check_flags()
        self._uncertain(parts[first:tail], first, len(parts) - tail)

    def _number(self, parts: Sequence[ir.Part]) -> None:
        open_ = any(isinstance(part, ir.Rest) for part in parts)
        self.reader.refuse_if(f"count < {len(parts) - 1}" if open_ else f"count != {len(parts)}")

    def _all_there(self, parts: Sequence[ir.Part]) -> None:
        behind = False
        for position, part in enumerate(parts):
            from_end = len(parts) - position
            if isinstance(part, ir.Rest):
                at = self.reader.local("at")
                self.lines.add(f"{at} = {position}")
                self._take_many(part, f"count - {from_end - 1}" if from_end > 1 else "count")
                behind = True
            else:
                self._certain(part, f"count - {from_end}" if behind else str(position))

    def _certain(self, part: ir.Part, index: str) -> None:
        assert isinstance(part, ir.Frame)
        frame = self.reader.local("frame")
        self.lines.add(f"{frame} = frame_at(frames, {index})")
        self.reader.refuse_if(f"{frame} is None")
        take_frame(self.reader, part.fields)

    def _uncertain(self, parts: Sequence[ir.Part], first: int, behind: int) -> None:
        """Take parts that may be absent; `first` frames precede them and `behind` follow."""
        at = self.reader.local("at")
        self.lines.add(f"{at} = {first}")
        for part in parts:
            assert not isinstance(part, ir.Rest)
            match part.presence:
                case ir.Announced(mask=mask, value=value):
                    with self.lines.block(f"if flags & 0x{mask:02x} == 0x{value:02x}:"):
                        self._next(part)
                case ir.Counted():
                    with self.lines.block(f"if {at} < count:"):
                        self._next(part)
                case _:
                    self._next(part)
        self.reader.refuse_if(f"{at} + {behind} != count" if behind else f"{at} != count")

    def _next(self, part: ir.Frame | ir.Stack) -> None:
        if isinstance(part, ir.Stack):
            self._take_many(part, "count")
            return
        frame = self.reader.local("frame")
        self.lines.add(f"{frame} = frame_at(frames, at)")
        self.reader.refuse_if(f"{frame} is None")
        take_frame(self.reader, part.fields)
        self.lines.add("at += 1")

    def _take_many(self, part: ir.Stack | ir.Rest, stop: str) -> None:
        kind = "stack" if isinstance(part, ir.Stack) else "rest"
        name = self.many[kind, part.field.type]
        target = f"made._{part.field.attribute}"
        self.lines.add(f"{target} = _take_{name}(frames, &at, {stop})")
        self.reader.refuse_if(f"{target} is None")

    def _check_flags(self) -> None:
        """Check for bits of parts that the message lacks, and for bits that must be set together."""
        announcing = announcing_bits(self.reader.protocol)
        if "flags" not in self.reader.used or not announcing:
            return
        groups: dict[int, set[int]] = {}
        for part in self.message_.parts:
            if isinstance(part, ir.Rest) or isinstance(part.presence, ir.Counted) or not part.presence.mask:
                continue
            values = groups.setdefault(part.presence.mask, set())
            values.add(part.presence.value)
            if isinstance(part.presence, ir.Announced):
                values.add(0)
        known = 0
        for mask, values in groups.items():
            known |= mask
            if values != {0, mask} or mask & (mask - 1):
                wanted = ", ".join(map(str, sorted(values)))
                self.reader.refuse_if(f"flags & 0x{mask:02x} not in ({wanted},)")
        if announcing & ~known:
            self.reader.refuse_if(f"flags & 0x{announcing & ~known:02x}")


def many_function(kind: str, type: ir.Type, reader: Reader) -> str:
    """Return the body of ``_take_<name>(frames, Py_ssize_t* place, Py_ssize_t stop)``: a tuple of frames, or None."""
    items, item, frame = (reader.local(name) for name in ("items", "item", "frame"))
    lines = reader.lines
    lines.add(f"{items} = []")
    if kind == "rest":
        # Usually there are no frames; then no list is created.
        with lines.block("if place[0] == stop:"):
            lines.add("return ()")
    with lines.block("while place[0] < stop:"):
        lines.add(f"{frame} = frame_at(frames, place[0])")
        reader.refuse_if(f"{frame} is None")
        lines.add("place[0] += 1")
        if kind == "stack":
            with lines.block(f"if not len({frame}):"):
                lines.add(f"return tuple({items})")
        take_whole(reader, type, item)
        if kind == "stack" and isinstance(type, ir.TextType) and type.terminated:
            # A frame of a single NUL: encoded without it, it would end the stack.
            reader.refuse_if(f"not {item}")
        lines.add(f"{items}.append({item})")
    lines.add("return None" if kind == "stack" else f"return tuple({items})")
    return reader.text()


def take_frame(reader: Reader, fields: tuple[ir.Field, ...]) -> None:
    """Take the fields of the frame in the variable ``frame``."""
    if len(fields) == 1 and not fields[0].optional and _fills(fields[0].type):
        take_whole(reader, fields[0].type, f"{reader.owner}._{fields[0].attribute}")
        return
    constants = [found.type.octets for found in fields if isinstance(found.type, ir.ConstantType)]
    if len(constants) == len(fields):
        octets = b"".join(constants)
        reader.refuse_if(f"not frame_is(frame, {literal(octets)}, {len(octets)})")
        return
    reader.local("run")
    reader.lines.add("run = run_of(frame)")
    reader.fields(fields)
    reader.refuse_if("run.at != run.end")


def _fills(type: ir.Type) -> bool:
    """Return whether a value is the whole content of its frame."""
    whole = isinstance(type, ir.TextType | ir.OctetsType) and type.length.kind == "rest"
    return whole or isinstance(type, ir.KeywordType | ir.JsonType | ir.ConstantType)


def take_whole(reader: Reader, type: ir.Type, target: str) -> None:
    """Take the value that fills the variable ``frame`` into `target`."""
    lines = reader.lines
    match type:
        case ir.ConstantType() as constant:
            octets = constant.octets
            reader.refuse_if(
                f"not frame_is(frame, {literal(octets)}, {len(octets)})" if octets else "len(frame)"
            )
        case ir.KeywordType(options=options):
            for number, option in enumerate(options):
                raw = option.encode()
                test = f"frame_is(frame, {literal(raw)}, {len(raw)})"
                with lines.block(f"{'elif' if number else 'if'} {test}:"):
                    lines.add(f"{target} = {literal(option)}")
            with lines.block("else:"):
                lines.add(f"return {reader.refusal}")
        case ir.OctetsType(minimum=minimum, maximum=maximum):
            if minimum:
                reader.refuse_if(f"len(frame) < {minimum}")
            if maximum is not None:
                reader.refuse_if(f"len(frame) > {maximum}")
            lines.add(f"{target} = frame")
        case ir.TextType(terminated=True):
            reader.local("piece")
            lines.add("piece = run_of(frame)")
            reader.refuse_if("not strip_nul(&piece)")
            lines.add(f"{target} = text_in(&piece)")
            reader.refuse_if(f"{target} is None")
        case _:
            lines.add(f"{target} = text_of(octets_of(frame), len(frame))")
            reader.refuse_if(f"{target} is None")


def _is_certain(part: ir.Part) -> bool:
    """Return whether a part is always one frame at a fixed index, independent of flags."""
    return isinstance(part, ir.Frame) and isinstance(part.presence, ir.Always) and not part.presence.mask
