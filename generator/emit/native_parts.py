"""Emitter of the compiled encoder of one message, ``frames__``.

It returns None for a value that it cannot write: of another type than expected (the pure codec also
accepts subclasses and views), too long, or one that would decode differently. Then the twin writes
the value or raises the error.
"""

from __future__ import annotations

from specwire.generator import ir
from specwire.generator.emit.native_encoding import Putter, is_plain
from specwire.generator.emit.native_types import Composite, literal
from specwire.generator.emit.python import Lines, announcing_bits, fixed_size


def encode_function(message: ir.Message, protocol: ir.Protocol, names: dict[Composite, str]) -> str:
    """Return the body of the method ``frames__``, without the check for other messages' octets."""
    putter = Putter(protocol, names, refusal="None", lines=Lines(2))
    _Parts(putter, message).message()
    return putter.text(2)


class _Parts:
    """Parts of one message, one frame or many each."""

    def __init__(self, putter: Putter, message: ir.Message) -> None:
        self.putter = putter
        self.lines = putter.lines
        self.parts = message.parts
        self.fields = message.fields

    def message(self) -> None:
        """Add the statements that build the list ``made``."""
        self._exclusive()
        self._flags()
        constant = [_constant_octets(part) for part in self.parts]
        if None not in constant:
            frames = ", ".join(literal(octets) for octets in constant if octets is not None)
            self.lines.add(f"{self.putter.local('made')} = [{frames}]")
            return
        if len(self.parts) == 1 and isinstance(self.parts[0], ir.Frame):
            self._frame(self.parts[0])
            self.lines.add(f"{self.putter.local('made')} = [frame]")
            return
        self.lines.add(f"{self.putter.local('made')} = []")
        before = ""
        for part in self.parts:
            before = self._part(part, before)

    def _exclusive(self) -> None:
        """Check that two readings of one frame are not both present."""
        groups: dict[int, list[str]] = {}
        for part in self.parts:
            if isinstance(part, ir.Frame) and isinstance(part.presence, ir.Announced):
                groups.setdefault(part.presence.mask, []).append(part.fields[0].attribute)
        for names in groups.values():
            if len(names) > 1:
                self.putter.refuse_if(" and ".join(f"self._{name} is not None" for name in names))

    def _flags(self) -> None:
        """Add the bits that announce the parts present."""
        announcing = announcing_bits(self.putter.protocol)
        found = next((f for f in self.fields if isinstance(f.type, ir.IntegerType) and f.type.bitmask), None)
        if found is None or not announcing:
            return
        flags = self.putter.local("flags")
        self.lines.add(f"{flags} = self._{found.attribute}")
        self.putter.refuse_if(f"{flags} & 0x{announcing:02x}")
        for part in self.parts:
            if isinstance(part, ir.Rest) or isinstance(part.presence, ir.Counted) or not part.presence.value:
                continue
            name = part.fields[0].attribute if isinstance(part, ir.Frame) else part.field.attribute
            if isinstance(part.presence, ir.Always):
                self.lines.add(f"{flags} |= 0x{part.presence.value:02x}")
                continue
            with self.lines.block(f"if self._{name} is not None:"):
                self.lines.add(f"{flags} |= 0x{part.presence.value:02x}")

    def _part(self, part: ir.Part, before: str) -> str:
        """Append the frames of a part; return the condition that an optional part is absent."""
        if isinstance(part, ir.Rest):
            self._many(part)
            return before
        if isinstance(part.presence, ir.Always):
            self._append(part)
            return before
        name = f"self._{(part.fields[0] if isinstance(part, ir.Frame) else part.field).attribute}"
        with self.lines.block(f"if {name} is not None:"):
            if before and isinstance(part.presence, ir.Counted):
                self.putter.refuse_if(before)
            self._append(part)
        return f"{name} is None" if isinstance(part.presence, ir.Counted) else before

    def _append(self, part: ir.Frame | ir.Stack) -> None:
        if isinstance(part, ir.Stack):
            self._many(part)
            self.lines.add('made.append(b"")')
            return
        octets = _constant_octets(part)
        if octets is None:
            self._frame(part)
        self.lines.add(f"made.append({'frame' if octets is None else literal(octets)})")

    def _many(self, part: ir.Stack | ir.Rest) -> None:
        value, item = f"self._{part.field.attribute}", self.putter.local("item")
        self.putter.refuse_if(f"type({value}) is not tuple")
        with self.lines.block(f"for {item} in <tuple>{value}:"):
            self._whole(part.field.type, item)
            if isinstance(part, ir.Stack):
                self.putter.refuse_if("not len(frame)")
            self.lines.add("made.append(frame)")

    def _frame(self, part: ir.Frame) -> None:
        """Build the octets of one frame in the variable ``frame``."""
        fields = part.fields
        if len(fields) == 1 and not fields[0].optional and _whole_type(fields[0].type):
            self._whole(fields[0].type, f"self._{fields[0].attribute}")
            return
        frame, putter = self.putter.local("frame"), self.putter
        if all(map(is_plain, fields)):
            total = sum(fixed_size(found.type) or 0 for found in fields)
            statements = putter.in_place(fields, putter.local("start"))
            self.lines.add(f"{frame} = bytes_of(NULL, {total})", f"start = <uint8_t*>octets_of({frame})")
            self.lines.add(*statements)
            return
        self.lines.add(f"begin(&{putter.local('out')})")
        putter.refusal = "drop(&out)"
        putter.fields(fields)
        putter.refusal = "None"
        self.lines.add(f"{frame} = finish(&out)")
        putter.refuse_if(f"{frame} is None")

    def _whole(self, type: ir.Type, value: str) -> None:
        """Build a frame from the value that fills it."""
        frame, putter, lines = self.putter.local("frame"), self.putter, self.lines
        match type:
            case ir.KeywordType(options=options):
                putter.refuse_if(f"type({value}) is not str")
                for number, option in enumerate(options):
                    with lines.block(f"{'elif' if number else 'if'} <str>{value} == {literal(option)}:"):
                        lines.add(f"{frame} = {literal(option.encode())}")
                with lines.block("else:"):
                    lines.add("return None")
            case ir.OctetsType(minimum=minimum, maximum=maximum):
                putter.refuse_if(f"type({value}) is not bytes")
                lines.add(f"{frame} = <bytes>{value}")
                if minimum:
                    putter.refuse_if(f"len({frame}) < {minimum}")
                if maximum is not None:
                    putter.refuse_if(f"len({frame}) > {maximum}")
            case ir.TextType(terminated=True):
                lines.add(f"{frame} = frame_of_terminated({value})")
                putter.refuse_if(f"{frame} is None")
            case _:
                lines.add(f"{frame} = frame_of_text({value})")
                putter.refuse_if(f"{frame} is None")


def _whole_type(type: ir.Type) -> bool:
    whole = isinstance(type, ir.TextType | ir.OctetsType) and type.length.kind == "rest"
    return whole or isinstance(type, ir.KeywordType | ir.JsonType)


def _constant_octets(part: ir.Part) -> bytes | None:
    """Return the octets of a constant frame, None for any other part."""
    if not isinstance(part, ir.Frame) or not isinstance(part.presence, ir.Always):
        return None
    constants = [found.type.octets for found in part.fields if isinstance(found.type, ir.ConstantType)]
    return b"".join(constants) if len(constants) == len(part.fields) else None
