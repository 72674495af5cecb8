"""Source of the strategies of fields, for ``strategies.py``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from specwire.generator import ir
from specwire.generator.emit.python import announcing_bits, octets_literal


class Values:
    """Writer of expressions for the values of one protocol; records the names that they refer to.

    Attributes:
        names: for each class, the function that draws its instances.
        patterns: for each character class of the grammar, the constant that holds it.
        constants: the package's constants that the expressions use.
    """

    def __init__(self, protocol: ir.Protocol, names: dict[str, str]) -> None:
        self.protocol = protocol
        self.names = names
        self.patterns: dict[str, str] = {}
        self.constants: set[str] = set()

    def run(self, fields: Sequence[ir.Field]) -> Iterator[tuple[str, str]]:
        """Yield each field of a run that has an attribute, with the source of its strategy."""
        sizes = [field.type.forms for field in fields if isinstance(field.type, ir.SizeType)]
        change = next((256 ** forms[0].octets - 1 for forms in sizes if len(forms) > 1), None)
        for field in fields:
            if not field.implied:
                yield field.attribute, self._field(field, change)

    def _field(self, field: ir.Field, change: int | None) -> str:
        """Return the strategy of a field; from `change` octets on, the size before it has another form."""
        match field.type:
            case ir.IntegerType(bitmask=True, octets=octets):
                return f"_st.bits({octets}, 0x{announcing_bits(self.protocol):02x})"
            case ir.IntegerType(octets=octets, enum=None, values=()) if field.sentinels:
                return f"_st.integers({octets}, ({self._sentinels(field)},))"
            case ir.OctetsType(length=ir.Length(kind="rest"), minimum=minimum, maximum=None) if change:
                return f"_st.octets({max(minimum, 1 if field.optional else 0)}, around={change})"
        # A value of no octets could not be distinguished from an omitted one.
        return self._value(field.type, field, least=1 if field.optional else 0)

    def frames(self, part: ir.Stack | ir.Rest) -> str:
        """Return the strategy of the frames of a stack or rest; an empty frame would end a stack."""
        least = 1 if isinstance(part, ir.Stack) else 0
        return f"_st.lists({self._value(part.field.type, part.field, least=least)})"

    def _sentinels(self, field: ir.Field) -> str:
        found = [one.name for one in self.protocol.constants if one.name in field.sentinels]
        self.constants.update(found)
        return ", ".join(found)

    def _value(self, type: ir.Type, field: ir.Field, least: int = 0) -> str:
        match type:
            case ir.IntegerType():
                return self._integer(type)
            case ir.KeywordType(options=options):
                return f"_st.one_value_of({options!r})"
            case ir.TextType():
                return f"_st.texts({self._text(type, field, least)})"
            case ir.OctetsType():
                return f"_st.octets({_bounds(*_sizes(type, least))})"
            case ir.JsonType():
                return f"_st.json_texts({_listed(str(least) if least else '', 'strict=strict')})"
            case ir.ListType():
                return self._list(type, field, least)
            case ir.PairsType():
                return self._pairs(type, field, least)
            case ir.RecordType(class_name=class_name):
                return f"{self.names[class_name]}(strict=strict)"
            case ir.UnionType(options=options):
                return f"_st.one_of([{', '.join(self._value(option, field) for option in options)}])"
        raise AssertionError("has no attribute")

    def _integer(self, type: ir.IntegerType) -> str:
        found = next((enum.members for enum in self.protocol.enums if enum.name == type.enum), ())
        members = tuple(value for _, value in found) or type.values
        return f"_st.one_value_of({members!r})" if members else f"_st.integers({type.octets})"

    def _text(self, type: ir.TextType, field: ir.Field, least: int = 0) -> str:
        length = type.length
        named = [
            f"least={least}" if least and length.kind in ("rest", "until") else "",
            f"most={256**length.octets - 1}" if length.kind == "prefix" else "",
            f"exactly={length.octets}" if length.kind == "fixed" else "",
            f"until={octets_literal(bytes.fromhex(length.until))}" if length.until else "",
            f"padding={octets_literal(bytes.fromhex(type.padding))}" if type.padding is not None else "",
            "terminated=True" if type.terminated else "",
            f"pattern={self._pattern(type.pattern, field)}, strict=strict"
            if type.pattern is not None
            else "",
        ]
        return _listed(*named)

    def _pattern(self, pattern: str, field: ir.Field) -> str:
        """Return the constant for a character class, named after the first field that uses it."""
        if pattern not in self.patterns:
            name, number = f"_{field.name.upper()}", 1
            while name in self.patterns.values():
                number += 1
                name = f"_{field.name.upper()}_{number}"
            self.patterns[pattern] = name
        return self.patterns[pattern]

    def _list(self, type: ir.ListType, field: ir.Field, least: int) -> str:
        bounds = _bounds(*_counts(type, least))
        # Limit elements that contain many elements themselves, as drawing them would take too long.
        flat = isinstance(type.element, ir.IntegerType | ir.TextType | ir.OctetsType)
        return f"_st.lists({_listed(self._value(type.element, field), bounds, '' if flat else 'full=False')})"

    def _pairs(self, type: ir.PairsType, field: ir.Field, least: int) -> str:
        bounds = _bounds(*_counts(type, least))
        if type.value is None:
            entry = f"_st.divided({_listed(repr(type.split), self._text(type.name, field))})"
            return f"_st.lists({_listed(entry, bounds)})"
        name, value = self._value(type.name, field), self._value(type.value, field)
        return f"_st.pairs({_listed(name, value, bounds)})"


def _sizes(type: ir.OctetsType, least: int) -> tuple[int, int | None]:
    """Return the minimum and maximum number of octets."""
    if type.length.kind == "fixed":
        return type.length.octets, type.length.octets
    counted = 256**type.length.octets - 1 if type.length.kind == "prefix" else None
    limits = [limit for limit in (type.maximum, counted) if limit is not None]
    # A length prefix can express that there are none.
    return max(type.minimum, 0 if counted is not None else least), min(limits, default=None)


def _counts(type: ir.ListType | ir.PairsType, least: int) -> tuple[int, int | None]:
    """Return the minimum and maximum number of entries."""
    if type.count_octets:
        return type.minimum, 256**type.count_octets - 1
    return max(type.minimum, least), None


def _bounds(least: int, most: int | None) -> str:
    if most is not None:
        return f"{least}, {most}"
    return str(least) if least else ""


def _listed(*arguments: str) -> str:
    """Return arguments joined by commas, without the empty ones."""
    found: Iterable[str] = filter(None, arguments)
    return ", ".join(found)
