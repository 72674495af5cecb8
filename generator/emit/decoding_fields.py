"""Fields of one frame or record in the fast decoders: runs of fixed size, then single values.

A frame or record that contains octets may be a view (see ``copy`` of `decode`), whose slices are
views too. All others are bytes.
"""

from __future__ import annotations

from specwire.generator import ir
from specwire.generator.emit.decoding_places import Place, plus
from specwire.generator.emit.python import (
    STRUCT_CODES,
    Lines,
    announcing_bits,
    element_annotation,
    fixed_size,
    octets_literal,
)
from specwire.generator.emit.records import function_name
from specwire.generator.names import constant_name
from specwire.generator.passes.layouts import is_open


class FieldDecoder(Place):
    """Decoder of the fields of one run, in order."""

    def run(self, fields: list[ir.Field]) -> None:
        """Decode the fields of a frame and check that it ends with the last."""
        if not self._fields(fields) and not _takes_all(fields[-1]):
            self.decoder.refuse_if(f"{self.place} != len({self.frame})")

    def record(self, fields: list[ir.Field]) -> str:
        """Decode the fields of a record; return the expression for the position after it."""
        size = next((n for n, field in enumerate(fields) if isinstance(field.type, ir.SizeType)), None)
        if size is None:
            self._fields(fields)
            return str(self.place)
        self._fields(fields[:size])
        length = self.size(fields[size].type)
        end, body = self.names.local("stop"), self.names.local("body")
        self.lines.add(f"{end} = {self.place} + {length}", f"{body} = {self.frame}[{self.place} : {end}]")
        if rest := fields[size + 1 :]:
            FieldDecoder(self.decoder, body, 0, view=self.view).run(rest)
        else:
            self.decoder.refuse_if(body)
        return end

    def _fields(self, fields: list[ir.Field]) -> bool:
        """Decode the fields; return whether the size of the whole frame has been checked."""
        index = 0
        while index < len(fields):
            stop = index
            while stop < len(fields) and is_fixed(fields[stop]):
                stop += 1
            if stop > index:
                whole = index == 0 and stop == len(fields) and self.place == 0
                if self._fixed(fields[index:stop], whole):
                    return True
                index = stop
                continue
            found = fields[index]
            if isinstance(found.type, ir.SizeType):
                length = self.size(found.type)
                self.decoder.refuse_if(f"{self.place} + {length} != len({self.frame})")
                self.inside = True
            elif found.optional:
                self._optional(found)
            else:
                self.decoder.values[found.attribute] = self._value(found.attribute, found.type)
            index += 1
        return False

    def _fixed(self, fields: list[ir.Field], whole: bool) -> bool:
        """Decode a run of fields with one unpack; return whether that checked the size of the frame."""
        size = sum(fixed_size(f.type) or 0 for f in fields)
        codes, unpacked = self._codes(fields)
        if unpacked:
            self._unpack(fields, codes, unpacked, whole)
        elif not isinstance(self.place, int):
            # In a loop, no other statement would detect the end of the octets.
            self.decoder.refuse_if(f"{self.place} + {size} > len({self.frame})")
        offset = 0
        for found in fields:
            if isinstance(found.type, ir.OctetsType):
                start = plus(self.place, offset)
                stop = plus(self.place, offset + found.type.length.octets)
                self.lines.add(f"{found.attribute} = {self.frame}[{start} : {stop}]")
                self.decoder.values[found.attribute] = found.attribute
            offset += fixed_size(found.type) or 0
        self.move(size)
        if not isinstance(self.place, int):
            self.inside = True
        elif unpacked:
            self.known = self.place
        return whole and bool(unpacked)

    def _unpack(self, fields: list[ir.Field], codes: str, unpacked: list[ir.Field], whole: bool) -> None:
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

    def _codes(self, fields: list[ir.Field]) -> tuple[str, list[ir.Field]]:
        """Return the struct codes of a run and the fields that the unpack returns.

        Constants that are already compared are skipped. Octets are skipped and sliced, so that a
        slice of a view is a view.
        """
        codes, pad = "", 0
        unpacked: list[ir.Field] = []
        for found in fields:
            size = fixed_size(found.type) or 0
            compared = self.skip >= size and isinstance(found.type, ir.ConstantType)
            if compared:
                self.skip -= size
            if compared or isinstance(found.type, ir.PaddingType | ir.OctetsType):
                pad += size
                continue
            if pad:
                codes, pad = f"{codes}{pad}x", 0
            number = size in STRUCT_CODES and isinstance(found.type, ir.IntegerType | ir.ConstantType)
            codes += STRUCT_CODES[size] if number else f"{size}s"
            unpacked.append(found)
        return codes + (f"{pad}x" if pad else ""), unpacked

    def _check(self, found: ir.Field) -> None:
        """Compare a constant; record the value of an unpacked field and check its range."""
        name = found.attribute
        match found.type:
            case ir.ConstantType() as constant:
                number = len(constant.octets) in STRUCT_CODES
                value = str(int.from_bytes(constant.octets, "big")) if number else _compared(constant.octets)
                self.decoder.refuse_if(f"{name} != {value}")
            case ir.IntegerType(octets=octets, bitmask=bitmask) as integer:
                value = name if octets in STRUCT_CODES else f'int.from_bytes({name}, "big")'
                self._in_range(integer, value)
                announcing = announcing_bits(self.decoder.protocol)
                kept = 256**octets - 1 - announcing
                self.decoder.values[name] = f"{value} & 0x{kept:02x}" if bitmask and announcing else value
            case ir.TextType(terminated=True) as text:
                self._text(name, text, name, view=False)
                self.decoder.values[name] = name
            case ir.TextType() as text:
                self.decoder.values[name] = text_of(text, name, view=False)

    def _in_range(self, type: ir.IntegerType, value: str) -> None:
        if type.enum:
            self.decoder.refuse_if(f"{value} not in _{type.enum.upper()}")
        elif type.values:
            self.decoder.refuse_if(f"{value} not in {type.values!r}")

    def _optional(self, found: ir.Field) -> None:
        """Decode a value that is present if the frame has octets left."""
        name = found.attribute
        self.make_variable()
        self.lines.add(f"{name}: {element_annotation(found.type)} | None = None")
        with self.lines.block(f"if {self.at} < len({self.frame}):"), self.names.scope():
            value = self.names.fresh("value", element_annotation(found.type))
            self.lines.add(f"{name} = {self._value(value, found.type)}")
            if _is_rest(found.type):
                self.lines.add(f"{self.at} = len({self.frame})")
        self.inside = False
        self.decoder.values[name] = name

    def _value(self, target: str, type: ir.Type) -> str:
        """Decode a value into the variable `target` and advance; return its expression."""
        match type:
            case ir.IntegerType():
                self.lines.add(f"{target} = {self.number(type.octets)}")
                self._in_range(type, target)
                self.move(type.octets)
                self.inside = True
            case ir.TextType(length=length):
                self._text(target, type, self.span(length), view=self.view)
            case ir.OctetsType(length=length):
                self.lines.add(f"{target} = {self.span(length)}")
                self._bounds(target, type)
            case ir.PairsType() | ir.ListType():
                return self._counted(target, type)
            case ir.RecordType() | ir.UnionType():
                self.make_variable()
                end = self.names.local("end")
                self.lines.add(f"{target}, {end} = _read_{function_name(type)}({self.frame}, {self.at})")
                self.lines.add(f"{self.at} = {end}")
                self.inside = False
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

    def _text(self, target: str, type: ir.TextType, content: str, *, view: bool) -> None:
        """Decode the octets `content` as text into the variable `target`."""
        self.lines.add(f"{target} = {text_of(type, content, view=view)}")
        if type.terminated:
            drop_nul(self.lines, target)

    def _counted(self, target: str, type: ir.PairsType | ir.ListType) -> str:
        """Decode a list or dictionary into the list `target`; return the expression for its tuple."""
        lines = self.lines
        head = f"while {self.at} < len({self.frame}):"
        if type.count_octets:
            count = self.names.local("count")
            lines.add(f"{count} = {self.number(type.count_octets)}")
            if type.minimum:
                self.decoder.refuse_if(f"{count} < {type.minimum}")
            self.move(type.count_octets)
            head = f"for _ in range({count}):"
        self.make_variable()
        element = element_annotation(type).removeprefix("tuple[").removesuffix(", ...]")
        lines.add(f"{self.names.declare(target, f'list[{element}]')} = []")
        self.inside = False
        with lines.block(head), self.names.scope():
            if isinstance(type, ir.PairsType):
                self._pair(target, type)
            else:
                item = self._value(self.names.fresh("item", element), type.element)
                lines.add(f"{target}.append({item})")
        self.inside = False
        if type.minimum and not type.count_octets:
            self.decoder.refuse_if(f"len({target}) < {type.minimum}")
        return f"tuple({target})"

    def _pair(self, target: str, type: ir.PairsType) -> None:
        kind = "str" if type.value is None else element_annotation(type.value)
        key, value = self.names.fresh("name", "str"), self.names.fresh("value", kind)
        if type.value is not None:
            self._value(key, type.name)
            self._value(value, type.value)
            self.lines.add(f"{target}.append(({key}, {value}))")
            return
        equals = self.names.fresh("equals", "str")
        text = text_of(type.name, self.span(type.name.length), view=self.view)
        method = "partition" if type.split == "first" else "rpartition"
        self.lines.add(f'{key}, {equals}, {value} = {text}.{method}("=")')
        self.decoder.refuse_if(f"not {equals}")
        self.lines.add(f"{target}.append(({key}, {value}))")


def text_of(type: ir.TextType, content: str, *, view: bool) -> str:
    """Return the expression that decodes `content`, which may be a view, as text."""
    if type.padding is not None:
        fill = octets_literal(bytes.fromhex(type.padding))
        return f"{f'bytes({content})' if view else content}.rstrip({fill}).decode()"
    return f'str({content}, "utf-8")' if view else f"{content}.decode()"


def drop_nul(lines: Lines, target: str) -> None:
    """Remove the NUL at the end of the text in the variable `target`."""
    with lines.block(f'if "\\0" in {target}:'):
        lines.add(f"{target} = without_nul({target})")


def _compared(octets: bytes) -> str:
    """Return octets as a literal; a repeated octet as a product."""
    if len(octets) > 8 and len(set(octets)) == 1:
        return f"{octets_literal(octets[:1])} * {len(octets)}"
    return octets_literal(octets)


def _takes_all(found: ir.Field) -> bool:
    """Return whether the last field of a frame extends to its end."""
    return _is_rest(found.type) and not found.optional


def _is_rest(type: ir.Type) -> bool:
    return isinstance(type, ir.TextType | ir.OctetsType) and is_open(type)


def is_fixed(found: ir.Field) -> bool:
    """Return whether a field is unpacked together with its neighbours, without keeping a view."""
    return fixed_size(found.type) is not None and not found.optional
