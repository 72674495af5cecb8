"""The fields inside one frame, for the fast decoders: runs of fixed size, then one variable after another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specwire.generator import ir
from specwire.generator.emit.python import STRUCT_CODES, announcing_bits, fixed_size, octets_literal
from specwire.generator.names import constant_name

if TYPE_CHECKING:
    from specwire.generator.emit.decoding import Decoder


class FieldDecoder:
    """The fields of one frame in turn; the place is a number as long as it is known, then a variable."""

    def __init__(self, decoder: Decoder, frame: str, skip: int) -> None:
        self.decoder = decoder
        self.frame = frame
        self.skip = skip
        self.place: int | str = 0
        self.at = decoder.local("at")
        self.end = decoder.local("end")

    def run(self, fields: list[ir.Field]) -> None:
        """Take the fields apart and check that the frame ends with the last."""
        index = 0
        while index < len(fields):
            stop = index
            while stop < len(fields) and fixed_size(fields[stop].type) is not None:
                stop += 1
            if stop > index:
                whole = index == 0 and stop == len(fields)
                self._fixed(fields[index:stop], whole)
                if whole:
                    return
                index = stop
                continue
            self._variable(fields[index])
            index += 1
        last = fields[-1].type
        if not (isinstance(last, ir.TextType | ir.OctetsType) and last.length.kind == "rest"):
            self.decoder.refuse_if(f"{self.place} != len({self.frame})")

    def _fixed(self, fields: list[ir.Field], whole: bool) -> None:
        """One unpack for a run of fields; whole frames are checked for their size by it."""
        size = sum(fixed_size(f.type) or 0 for f in fields)
        codes, unpacked = self._codes(fields)
        if not unpacked:
            self._advance(size)
            return
        suffix = "" if whole or self.place == 0 else f"_{constant_name(fields[0].name)}"
        struct = self.decoder.struct(suffix, codes)
        target = ", ".join(found.attribute for found in unpacked)
        target = f"({target},)" if len(unpacked) == 1 else target
        if whole:
            self.decoder.lines.add(f"{target} = {struct}.unpack({self.frame})")
        elif self.place == 0:
            self.decoder.lines.add(f"{target} = {struct}.unpack_from({self.frame})")
        else:
            self.decoder.lines.add(f"{target} = {struct}.unpack_from({self.frame}, {self.place})")
        for found in unpacked:
            self._check(found)
        self._advance(size)

    def _codes(self, fields: list[ir.Field]) -> tuple[str, list[ir.Field]]:
        """The struct codes of a run and the fields that the unpack gives; compared constants are skipped."""
        codes, pad = "", 0
        unpacked: list[ir.Field] = []
        for found in fields:
            size = fixed_size(found.type) or 0
            if self.skip >= size and isinstance(found.type, ir.ConstantType):
                self.skip -= size
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
            case ir.IntegerType(octets=octets, enum=enum, bitmask=bitmask):
                value = name if octets in STRUCT_CODES else f'int.from_bytes({name}, "big")'
                if enum:
                    self.decoder.refuse_if(f"{value} not in _{enum.upper()}")
                announcing = announcing_bits(self.decoder.protocol)
                kept = 256**octets - 1 - announcing
                self.decoder.values[name] = f"{value} & 0x{kept:02x}" if bitmask and announcing else value
            case _:
                self.decoder.values[name] = name

    def _advance(self, size: int) -> None:
        if isinstance(self.place, int):
            self.place += size
        else:
            self.decoder.lines.add(f"{self.at} += {size}")

    def _variable(self, found: ir.Field) -> None:
        name = found.attribute
        match found.type:
            case ir.TextType(length=length):
                self._spanned(length)
                self.decoder.lines.add(f'{name} = str({self.frame}[{self._content}], "utf-8")')
                if found.type.terminated:
                    self.decoder.lines.add(f"{name} = without_nul({name})")
                self.decoder.values[name] = name
                self._settle(length)
            case ir.OctetsType(length=length):
                self._spanned(length)
                self.decoder.lines.add(f"{name} = bytes({self.frame}[{self._content}])")
                self.decoder.values[name] = name
                self._settle(length)
            case ir.PairsType() | ir.ListType():
                self._counted(found, found.type)
            case _:
                raise AssertionError(f"{found.name} fills a frame")

    def _spanned(self, length: ir.Length) -> None:
        """Find the end of a value with its length in front; remember the slice of its content."""
        if length.kind == "rest":
            self._content = f"{self.place}:"
            return
        start = _plus(self.place, length.octets)
        target = self.at if isinstance(self.place, int) else self.end
        self.decoder.lines.add(f"{target} = {start} + {self._number(length.octets)}")
        self._content = f"{start} : {target}"

    def _settle(self, length: ir.Length) -> None:
        if length.kind == "rest":
            return
        if not isinstance(self.place, int):
            self.decoder.lines.add(f"{self.at} = {self.end}")
        self.place = self.at

    def _number(self, octets: int) -> str:
        """The expression for an integer at the place."""
        if octets == 1:
            return f"{self.frame}[{self.place}]"
        return f"_U{octets * 8}.unpack_from({self.frame}, {self.place})[0]"

    def _counted(self, found: ir.Field, type: ir.PairsType | ir.ListType) -> None:
        lines, name = self.decoder.lines, found.attribute
        count = self.decoder.local("count")
        lines.add(f"{count} = {self._number(type.count_octets)}")
        if isinstance(self.place, int):
            lines.add(f"{self.at} = {self.place + type.count_octets}")
            self.place = self.at
        else:
            lines.add(f"{self.at} += {type.count_octets}")
        element = "tuple[str, str]" if isinstance(type, ir.PairsType) else _element_annotation(type)
        lines.add(f"{name}: list[{element}] = []")
        with lines.block(f"for _ in range({count}):"):
            if isinstance(type, ir.PairsType):
                self._pair(name, type)
            else:
                self._item(name, type)
        self.decoder.values[name] = f"tuple({name})"

    def _text_at(self, target: str, type: ir.TextType) -> None:
        lines = self.decoder.lines
        self._spanned(type.length)
        lines.add(f'{target} = str({self.frame}[{self._content}], "utf-8")')
        lines.add(f"{self.at} = {self.end}")

    def _pair(self, name: str, type: ir.PairsType) -> None:
        lines = self.decoder.lines
        key, value = self.decoder.local("name"), self.decoder.local("value")
        if type.value is not None:
            self._text_at(key, type.name)
            self._text_at(value, type.value)
            lines.add(f"{name}.append(({key}, {value}))")
            return
        equals = self.decoder.local("equals")
        self._spanned(type.name.length)
        text = f'str({self.frame}[{self._content}], "utf-8")'
        method = "partition" if type.split == "first" else "rpartition"
        lines.add(f'{key}, {equals}, {value} = {text}.{method}("=")')
        self.decoder.refuse_if(f"not {equals}")
        lines.add(f"{name}.append(({key}, {value}))")
        lines.add(f"{self.at} = {self.end}")

    def _item(self, name: str, type: ir.ListType) -> None:
        lines = self.decoder.lines
        match type.element:
            case ir.TextType() as text:
                item = self.decoder.local("item")
                self._text_at(item, text)
                lines.add(f"{name}.append({item})")
            case ir.OctetsType(length=ir.Length(kind="prefix") as length):
                self._spanned(length)
                lines.add(f"{name}.append(bytes({self.frame}[{self._content}]))")
                lines.add(f"{self.at} = {self.end}")
            case ir.OctetsType(length=length):
                with lines.block(f"if {self.at} + {length.octets} > len({self.frame}):"):
                    lines.add("raise ValueError")
                lines.add(f"{name}.append(bytes({self.frame}[{self.at} : {self.at} + {length.octets}]))")
                lines.add(f"{self.at} += {length.octets}")
            case ir.IntegerType(octets=octets):
                lines.add(f"{name}.append({self._number(octets)})")
                lines.add(f"{self.at} += {octets}")


def _element_annotation(type: ir.ListType) -> str:
    return {ir.TextType: "str", ir.OctetsType: "bytes", ir.IntegerType: "int"}[type.element.__class__]


def _plus(place: int | str, octets: int) -> str:
    return str(place + octets) if isinstance(place, int) else f"{place} + {octets}"
