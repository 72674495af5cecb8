"""Position of a fast decoder in a run of fields: a number while it is known, then a variable.

A value after one of variable size is read at a variable position. The position advances whether or
not the octets exist: a slice that is too short fails the final check that the frame ends with its
last value. Only inside a loop must missing octets be detected at once.
"""

from __future__ import annotations

from specwire.generator import ir
from specwire.generator.emit.decoding_state import Decoder
from specwire.generator.emit.python import STRUCT_CODES, octets_literal


class Place:
    """Position in a frame or record, which advances with every value."""

    def __init__(
        self, decoder: Decoder, frame: str, skip: int, *, view: bool, place: int | str = 0, at: str = ""
    ) -> None:
        self.decoder = decoder
        self.lines = decoder.lines
        self.names = decoder.names
        self.frame = frame
        self.view = view
        """The frame may be a view."""
        self.skip = skip
        self.known = skip
        """Number of octets of the frame that are known to exist."""
        self.inside = False
        """The position, a variable, is known to be within the frame."""
        self.place = place
        self.at = at or self.names.local("at")

    def make_variable(self) -> None:
        """Turn the position into a variable."""
        if isinstance(self.place, int):
            self.lines.add(f"{self.at} = {self.place}")
        self.place = self.at

    def move(self, octets: int) -> None:
        """Advance by `octets` octets."""
        if isinstance(self.place, int):
            self.place += octets
        else:
            self.lines.add(f"{self.at} += {octets}")
            self.inside = False

    def span(self, length: ir.Length) -> str:
        """Advance past a value; return the slice of the frame with its content."""
        match length.kind:
            case "rest":
                return self._rest()
            case "until":
                return self._until(bytes.fromhex(length.until))
            case "fixed":
                return self._of_size(length.octets)
        first = self.names.local("begin") if not isinstance(self.place, int) else ""
        number = self.number(length.octets)
        self.inside = False
        if isinstance(self.place, int):
            start = self.place + length.octets
            self.lines.add(f"{self.at} = {start} + {number}")
            self.place = self.at
            return f"{self.frame}[{start} : {self.at}]"
        self.lines.add(f"{first} = {self.at} + {length.octets}", f"{self.at} = {first} + {number}")
        return f"{self.frame}[{first} : {self.at}]"

    def _rest(self) -> str:
        """Return the rest of the frame."""
        if isinstance(self.place, int):
            if self.place > self.known:
                self.decoder.refuse_if(f"len({self.frame}) < {self.place}")
        elif not self.inside:
            self.decoder.refuse_if(f"{self.at} > len({self.frame})")
        return f"{self.frame}[{self.place} :]"

    def _of_size(self, octets: int) -> str:
        """Return a slice of `octets` octets."""
        if isinstance(self.place, int):
            start = self.place
            self.place += octets
            return f"{self.frame}[{start} : {self.place}]"
        first = self.names.local("begin")
        self.lines.add(f"{first} = {self.at}", f"{self.at} += {octets}")
        self.decoder.refuse_if(f"{self.at} > len({self.frame})")
        self.inside = True
        return f"{self.frame}[{first} : {self.at}]"

    def _until(self, end: bytes) -> str:
        """Advance to a text's terminator; raise at once if there is none."""
        start = self.place
        if not isinstance(start, int):
            start = self.names.local("begin")
            self.lines.add(f"{start} = {self.at}")
        found = "index_of({0}, " if self.view else "{0}.index("
        self.lines.add(f"{self.at} = {found.format(self.frame)}{octets_literal(end)}, {start})")
        self.place, self.inside = self.at, True
        return f"{self.frame}[{start} : {self.at}]"

    def number(self, octets: int) -> str:
        """Return the expression for an integer at the position."""
        if octets == 1:
            return f"{self.frame}[{self.place}]"
        if octets in STRUCT_CODES:
            return f"_U{octets * 8}.unpack_from({self.frame}, {self.place})[0]"
        end = plus(self.place, octets)
        self.decoder.refuse_if(f"{end} > len({self.frame})")
        return f'int.from_bytes({self.frame}[{self.place} : {end}], "big")'

    def size(self, type: ir.Type) -> str:
        """Read a size; return the variable with the number of octets that follow."""
        assert isinstance(type, ir.SizeType)
        size = self.names.local("size")
        if len(type.forms) == 1:
            (form,) = type.forms
            if form.tag:
                self.decoder.refuse_if(self._tagged(form.tag, "!="))
                self.move(len(form.tag) // 2)
            self.lines.add(f"{size} = {self.number(form.octets)}")
            self.move(form.octets)
            return size
        # A form without a tag must not begin like any other form.
        start = self.place
        for number, form in enumerate(sorted(type.forms, key=lambda form: not form.tag)):
            test = f"{'elif' if number else 'if'} {self._tagged(form.tag, '==')}:" if form.tag else "else:"
            with self.lines.block(test):
                self._form(form, size, start)
        if all(form.tag for form in type.forms):
            with self.lines.block("else:"):
                self.lines.add("raise ValueError")
        self.place, self.inside = self.at, False
        return size

    def _form(self, form: ir.SizeForm, size: str, start: int | str) -> None:
        """Read a size in one of its forms; the position becomes a variable after it."""
        self.place = plus(start, len(form.tag) // 2) if form.tag else start
        self.lines.add(f"{size} = {self.number(form.octets)}")
        if isinstance(start, int):
            self.lines.add(f"{self.at} = {start + len(form.tag) // 2 + form.octets}")
        else:
            self.lines.add(f"{self.at} += {len(form.tag) // 2 + form.octets}")
        self.place = start

    def _tagged(self, tag: str, operator: str) -> str:
        """Return the condition that the octets at the position are, or are not, `tag`."""
        octets = bytes.fromhex(tag)
        if len(octets) == 1:
            return f"{self.frame}[{self.place}] {operator} 0x{tag}"
        end = plus(self.place, len(octets))
        return f"{self.frame}[{self.place} : {end}] {operator} {octets_literal(octets)}"


def plus(place: int | str, octets: int) -> str:
    return str(place + octets) if isinstance(place, int) else f"{place} + {octets}"
