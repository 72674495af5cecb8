"""The fields inside one frame or record, for the fast decoders: runs of fixed size, then one value after another.

A value behind one of variable size is read at a place that is a variable. It moves past the octets whether
they are there or not: a slice that is too short moves no further than the check that the frame ends where
its last value does. Only inside a loop must what is missing be noticed at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from specwire.generator import ir
from specwire.generator.emit.python import (
    STRUCT_CODES,
    announcing_bits,
    element_annotation,
    fixed_size,
    octets_literal,
)
from specwire.generator.emit.records import function_name
from specwire.generator.names import constant_name
from specwire.generator.passes.layouts import is_open

if TYPE_CHECKING:
    from specwire.generator.emit.decoding import Decoder


class FieldDecoder:
    """The fields of one run in turn; the place is a number as long as it is known, then a variable."""

    def __init__(
        self, decoder: Decoder, frame: str, skip: int, *, place: int | str = 0, at: str = ""
    ) -> None:
        self.decoder = decoder
        self.lines = decoder.lines
        self.frame = frame
        self.skip = skip
        self.known = skip
        """So many octets of the frame are there: somebody has looked."""
        self.place = place
        self.at = at or decoder.local("at")

    def run(self, fields: list[ir.Field]) -> None:
        """Take the fields of a frame apart and check that it ends with the last."""
        if not self._fields(fields) and not _takes_all(fields[-1]):
            self.decoder.refuse_if(f"{self.place} != len({self.frame})")

    def record(self, fields: list[ir.Field]) -> str:
        """Take the fields of a record apart; return the expression for the place behind it."""
        size = next((n for n, field in enumerate(fields) if isinstance(field.type, ir.SizeType)), None)
        if size is None:
            self._fields(fields)
            return str(self.place)
        self._fields(fields[:size])
        length = self._size(fields[size].type)
        end, body = self.decoder.local("stop"), self.decoder.local("body")
        self.lines.add(f"{end} = {self.place} + {length}", f"{body} = {self.frame}[{self.place} : {end}]")
        if rest := fields[size + 1 :]:
            FieldDecoder(self.decoder, body, 0).run(rest)
        else:
            self.decoder.refuse_if(body)
        return end

    def _fields(self, fields: list[ir.Field]) -> bool:
        """Take the fields apart; return whether the size of the whole frame has been checked on the way."""
        index = 0
        while index < len(fields):
            stop = index
            while stop < len(fields) and _is_fixed(fields[stop]):
                stop += 1
            if stop > index:
                whole = index == 0 and stop == len(fields) and self.place == 0
                if self._fixed(fields[index:stop], whole):
                    return True
                index = stop
                continue
            found = fields[index]
            if isinstance(found.type, ir.SizeType):
                length = self._size(found.type)
                self.decoder.refuse_if(f"{length} != len({self.frame}) - {self.place}")
            elif found.optional:
                self._optional(found)
            else:
                self.decoder.values[found.attribute] = self._value(found.attribute, found.type)
            index += 1
        return False

    def _fixed(self, fields: list[ir.Field], whole: bool) -> bool:
        """One unpack for a run of fields; return whether it has checked the size of the frame."""
        size = sum(fixed_size(f.type) or 0 for f in fields)
        codes, unpacked = self._codes(fields)
        if not unpacked:
            if not isinstance(self.place, int):
                # Nothing else would notice, in a loop, that there is nothing left.
                self.decoder.refuse_if(f"{self.place} + {size} > len({self.frame})")
            self._moved(size)
            return False
        suffix = "" if whole or self.place == 0 else f"_{constant_name(fields[0].name)}"
        struct = self.decoder.struct(suffix, codes)
        target = ", ".join(found.attribute for found in unpacked)
        target = f"({target},)" if len(unpacked) == 1 else target
        if whole:
            self.lines.add(f"{target} = {struct}.unpack({self.frame})")
        elif self.place == 0:
            self.lines.add(f"{target} = {struct}.unpack_from({self.frame})")
        else:
            self.lines.add(f"{target} = {struct}.unpack_from({self.frame}, {self.place})")
        for found in unpacked:
            self._check(found)
        self._moved(size)
        if isinstance(self.place, int):
            self.known = self.place
        return whole

    def _codes(self, fields: list[ir.Field]) -> tuple[str, list[ir.Field]]:
        """The struct codes of a run and the fields that the unpack gives; compared constants are skipped."""
        codes, pad = "", 0
        unpacked: list[ir.Field] = []
        for found in fields:
            size = fixed_size(found.type) or 0
            compared = self.skip >= size and isinstance(found.type, ir.ConstantType)
            if compared:
                self.skip -= size
            if compared or isinstance(found.type, ir.PaddingType):
                pad += size
                continue
            if pad:
                codes, pad = f"{codes}{pad}x", 0
            number = size in STRUCT_CODES and isinstance(found.type, ir.IntegerType | ir.ConstantType)
            codes += STRUCT_CODES[size] if number else f"{size}s"
            unpacked.append(found)
        return codes + (f"{pad}x" if pad else ""), unpacked

    def _check(self, found: ir.Field) -> None:
        """Compare a constant; note what an unpacked field's value is, and check its range."""
        name = found.attribute
        match found.type:
            case ir.ConstantType() as constant:
                number = len(constant.octets) in STRUCT_CODES
                value = (
                    str(int.from_bytes(constant.octets, "big")) if number else octets_literal(constant.octets)
                )
                self.decoder.refuse_if(f"{name} != {value}")
            case ir.IntegerType(octets=octets, bitmask=bitmask) as integer:
                value = name if octets in STRUCT_CODES else f'int.from_bytes({name}, "big")'
                self._in_range(integer, value)
                announcing = announcing_bits(self.decoder.protocol)
                kept = 256**octets - 1 - announcing
                self.decoder.values[name] = f"{value} & 0x{kept:02x}" if bitmask and announcing else value
            case ir.TextType() as text:
                self.decoder.values[name] = _text(text, name)
            case _:
                self.decoder.values[name] = name

    def _in_range(self, type: ir.IntegerType, value: str) -> None:
        if type.enum:
            self.decoder.refuse_if(f"{value} not in _{type.enum.upper()}")
        elif type.values:
            self.decoder.refuse_if(f"{value} not in {type.values!r}")

    def _at(self) -> None:
        """Make the place a variable."""
        if isinstance(self.place, int):
            self.lines.add(f"{self.at} = {self.place}")
        self.place = self.at

    def _optional(self, found: ir.Field) -> None:
        """A value that is there where the frame goes on."""
        name = found.attribute
        self._at()
        value = self.decoder.fresh("value")
        self.lines.add(f"{name}: {element_annotation(found.type)} | None = None")
        with self.lines.block(f"if {self.at} < len({self.frame}):"):
            self.lines.add(f"{name} = {self._value(value, found.type)}")
        self.decoder.values[name] = name

    def _value(self, target: str, type: ir.Type) -> str:
        """Read a value at the place into the variable `target`, and move on; return the expression for it."""
        match type:
            case ir.IntegerType():
                self.lines.add(f"{target} = {self._number(type.octets)}")
                self._in_range(type, target)
                self._moved(type.octets)
            case ir.TextType(length=length):
                content = self._span(length)
                self.lines.add(f"{target} = {_text(type, content)}")
            case ir.OctetsType(length=length):
                content = self._span(length)
                self.lines.add(f"{target} = bytes({content})")
                self._bounds(target, type)
            case ir.PairsType() | ir.ListType():
                return self._counted(target, type)
            case ir.RecordType() | ir.UnionType():
                self._at()
                end = self.decoder.local("end")
                self.lines.add(f"{target}, {end} = _read_{function_name(type)}({self.frame}, {self.at})")
                self.lines.add(f"{self.at} = {end}")
            case _:
                raise AssertionError(f"{target} fills a frame, or is none of the message's values")
        return target

    def _bounds(self, target: str, type: ir.OctetsType) -> None:
        if type.length.kind == "fixed":
            if isinstance(self.place, int):
                self.decoder.refuse_if(f"len({target}) != {type.length.octets}")
            return
        if type.minimum:
            self.decoder.refuse_if(f"len({target}) < {type.minimum}")
        if type.maximum is not None:
            self.decoder.refuse_if(f"len({target}) > {type.maximum}")

    def _moved(self, octets: int) -> None:
        if isinstance(self.place, int):
            self.place += octets
        else:
            self.lines.add(f"{self.at} += {octets}")

    def _span(self, length: ir.Length) -> str:
        """Move past a value; return the slice of the frame that is its content."""
        if length.kind == "rest":
            start = self.place
            if not isinstance(start, int):
                begin = self.decoder.local("begin")
                self.decoder.refuse_if(f"{self.at} > len({self.frame})")
                self.lines.add(f"{begin} = {self.at}", f"{self.at} = len({self.frame})")
                return f"{self.frame}[{begin}:]"
            if start > self.known:
                self.decoder.refuse_if(f"len({self.frame}) < {start}")
            return f"{self.frame}[{start}:]"
        if length.kind == "until":
            return self._until(bytes.fromhex(length.until))
        if length.kind == "fixed" and isinstance(self.place, int):
            start = self.place
            self.place += length.octets
            return f"{self.frame}[{start} : {self.place}]"
        first = self.decoder.local("begin") if not isinstance(self.place, int) else ""
        if length.kind == "fixed":
            self.lines.add(f"{first} = {self.at}", f"{self.at} += {length.octets}")
            self.decoder.refuse_if(f"{self.at} > len({self.frame})")
            return f"{self.frame}[{first} : {self.at}]"
        number = self._number(length.octets)
        if isinstance(self.place, int):
            start = self.place + length.octets
            self.lines.add(f"{self.at} = {start} + {number}")
            self.place = self.at
            return f"{self.frame}[{start} : {self.at}]"
        self.lines.add(f"{first} = {self.at} + {length.octets}", f"{self.at} = {first} + {number}")
        return f"{self.frame}[{first} : {self.at}]"

    def _until(self, end: bytes) -> str:
        """Move to the octets that end a text; what is not there is an error at once."""
        start = self.place
        if not isinstance(start, int):
            start = self.decoder.local("begin")
            self.lines.add(f"{start} = {self.at}")
        self.lines.add(f"{self.at} = bytes({self.frame}).index({octets_literal(end)}, {start})")
        self.place = self.at
        return f"{self.frame}[{start} : {self.at}]"

    def _number(self, octets: int) -> str:
        """The expression for an integer at the place."""
        if octets == 1:
            return f"{self.frame}[{self.place}]"
        if octets in STRUCT_CODES:
            return f"_U{octets * 8}.unpack_from({self.frame}, {self.place})[0]"
        end = _plus(self.place, octets)
        self.decoder.refuse_if(f"{end} > len({self.frame})")
        return f'int.from_bytes({self.frame}[{self.place} : {end}], "big")'

    def _size(self, type: ir.Type) -> str:
        """Read a size; return the expression for how many octets it says follow."""
        assert isinstance(type, ir.SizeType)
        size = self.decoder.local("size")
        if len(type.forms) == 1:
            (form,) = type.forms
            if form.tag:
                self._tag(form.tag)
            self.lines.add(f"{size} = {self._number(form.octets)}")
            self._moved(form.octets)
            return size
        self._at()
        tagged = [form for form in type.forms if form.tag]
        bare = [form for form in type.forms if not form.tag]
        for number, form in enumerate((*tagged, *bare)):
            octets = bytes.fromhex(form.tag)
            test = f"{self.frame}[{self.at} : {self.at} + {len(octets)}] == {octets_literal(octets)}"
            with self.lines.block(f"{'elif' if number else 'if'} {test}:" if octets else "else:"):
                if octets:
                    self._moved(len(octets))
                self.lines.add(f"{size} = {self._number(form.octets)}")
                self._moved(form.octets)
        if not bare:
            with self.lines.block("else:"):
                self.lines.add("raise ValueError")
        return size

    def _tag(self, tag: str) -> None:
        octets = bytes.fromhex(tag)
        end = _plus(self.place, len(octets))
        self.decoder.refuse_if(f"{self.frame}[{self.place} : {end}] != {octets_literal(octets)}")
        self._moved(len(octets))

    def _counted(self, target: str, type: ir.PairsType | ir.ListType) -> str:
        """Read a list or a dictionary into the list `target`; return the expression for its tuple."""
        lines = self.lines
        head = f"while {self.at} < len({self.frame}):"
        if type.count_octets:
            count = self.decoder.local("count")
            lines.add(f"{count} = {self._number(type.count_octets)}")
            if type.minimum:
                self.decoder.refuse_if(f"{count} < {type.minimum}")
            self._moved(type.count_octets)
            head = f"for _ in range({count}):"
        self._at()
        element = element_annotation(type).removeprefix("tuple[").removesuffix(", ...]")
        lines.add(f"{target}: list[{element}] = []")
        with lines.block(head):
            if isinstance(type, ir.PairsType):
                self._pair(target, type)
            else:
                item = self._value(self.decoder.fresh("item"), type.element)
                lines.add(f"{target}.append({item})")
        if type.minimum and not type.count_octets:
            self.decoder.refuse_if(f"len({target}) < {type.minimum}")
        return f"tuple({target})"

    def _pair(self, target: str, type: ir.PairsType) -> None:
        key, value = self.decoder.fresh("name"), self.decoder.fresh("value")
        if type.value is not None:
            self._value(key, type.name)
            self._value(value, type.value)
            self.lines.add(f"{target}.append(({key}, {value}))")
            return
        equals = self.decoder.fresh("equals")
        text = f'str({self._span(type.name.length)}, "utf-8")'
        method = "partition" if type.split == "first" else "rpartition"
        self.lines.add(f'{key}, {equals}, {value} = {text}.{method}("=")')
        self.decoder.refuse_if(f"not {equals}")
        self.lines.add(f"{target}.append(({key}, {value}))")


def _takes_all(found: ir.Field) -> bool:
    """Whether the last field of a frame is whatever is left of it."""
    rest = isinstance(found.type, ir.TextType | ir.OctetsType) and is_open(found.type)
    return rest and not found.optional


def _is_fixed(found: ir.Field) -> bool:
    return fixed_size(found.type) is not None and not found.optional


def _text(type: ir.TextType, content: str) -> str:
    """The expression for a text, given that for its octets."""
    if type.padding is not None:
        fill = octets_literal(bytes.fromhex(type.padding))
        return f'str(bytes({content}).rstrip({fill}), "utf-8")'
    text = f'str({content}, "utf-8")'
    return f"without_nul({text})" if type.terminated else text


def _plus(place: int | str, octets: int) -> str:
    return str(place + octets) if isinstance(place, int) else f"{place} + {octets}"
