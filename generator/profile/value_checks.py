"""Invalid values of a profile that have the right type: E510.

Texts are written to generated Python, JSON and tables, so they must not contain control characters,
and names and titles must be one line. Numbers have at most 64 bits.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from datetime import datetime

import msgspec

from specwire.generator.diagnostics import Diagnostics
from specwire.generator.profile import toml_places
from specwire.generator.profile.tables import NOTHING_SAID, BitTable, LoadedProfile, StreamTable, TypeHint

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_-]*\Z")
_MODULE_NAME = re.compile(r"[A-Z][A-Z0-9_]*\Z")
_LOWER_NAME = re.compile(r"[a-z][a-z0-9_]*\Z")
_FUNCTION = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*\Z")
_HEX = re.compile(r"([0-9a-f]{2})+\Z")
_PARAGRAPHS = frozenset({"text", "why", "was", "now", "doc"})
"""Keys whose text may be several lines."""
_TITLES = frozenset({"title", "edition", "document", "name", "socket", "unit"})
"""Keys whose text is inserted unchanged into docstrings of generated modules."""
MAX_DEPTH = 128
"""Maximum of values that contain each other. Decoders use their stack for them, and so do `repr` and `pickle`."""
WIDTHS = (1, 2, 4, 8)
"""Permitted octets of length fields."""
UNIX_EPOCH = "1970-01-01"
"""Epoch of timestamps for which the profile states none."""
_NOT_OF_BITS = (
    "type",
    "signed",
    "counts",
    "checksum",
    "constant",
    "members",
    "default",
    "padding",
    "scope",
    "name",
    "timestamp",
)
"""Keys that do not apply to an integer made of bits."""

Fault = tuple[toml_places.Path, str, str | None]


def check_values(loaded: LoadedProfile, diagnostics: Diagnostics) -> None:
    """Report every invalid value of the profile, not of its base."""
    for path, message, help in (*_walk(msgspec.to_builtins(loaded.profile), ()), *_named(loaded)):
        diagnostics.error("E510", loaded.place(*path), message, help)


def read_epoch(text: str | None) -> str:
    """Return the epoch of a timestamp in one spelling: a date, or a date and time with ``Z``.

    Raises:
        ValueError: the text is no date or date-time in UTC.
    """
    if text is None:
        return UNIX_EPOCH
    instant = datetime.fromisoformat(text)
    if instant.utcoffset():
        raise ValueError(f"{text!r} is not in UTC")
    instant = instant.replace(tzinfo=None)
    if instant.time() == datetime.min.time():
        return instant.date().isoformat()
    return f"{instant.isoformat()}Z"


def _walk(value: object, path: toml_places.Path) -> Iterator[Fault]:
    match value:
        case dict():
            for key, inner in value.items():
                yield from _walk(inner, (*path, key))
        case list() | tuple():
            for number, inner in enumerate(value):
                yield from _walk(inner, (*path, number))
        case str():
            if _CONTROL.search(value):
                yield path, "the text contains a control character", "remove it"
            elif "\n" in value and path[-1] not in _PARAGRAPHS:
                yield path, "the text has more than one line", "write it on one line"
            elif path[-1] in _TITLES and re.search(r'["\\]', value):
                yield path, "the text contains a double quote or a backslash", "remove it"
        case int() if not -(2**63) <= value < 2**64:
            yield path, "the number has more than 64 bits", "write a number below 2^64"
        case float() if not math.isfinite(value):
            yield path, f"{value} is not a finite number", "write a number such as 1.0"


def _named(loaded: LoadedProfile) -> Iterator[Fault]:
    profile = loaded.profile
    for letter in profile.roles:
        if not re.fullmatch("[A-Za-z]", letter):
            yield (
                ("roles", letter),
                f"{letter!r} is not a role",
                "use the single letter in front of ':' in the grammar",
            )
    for name, seconds in profile.timers.items():
        if not _LOWER_NAME.match(name):
            yield ("timers", name), f"{name!r} cannot name a timer", "use lower-case letters, digits and '_'"
        if seconds <= 0:
            yield (
                ("timers", name),
                f"timer '{name}' is {seconds:g} s",
                "write a number of seconds above 0",
            )
    if not 1 <= profile.max_depth <= MAX_DEPTH:
        yield (
            ("max_depth",),
            f"{profile.max_depth} levels are not possible",
            f"write a number from 1 to {MAX_DEPTH}",
        )
    for name in profile.constants:
        if not _MODULE_NAME.match(name):
            yield (
                ("constants", name),
                f"{name!r} cannot name a constant",
                "use capital letters, digits and '_'",
            )
    for rule, hint in profile.types.items():
        yield from _hint(rule, hint)
        yield from _timestamp(("types", rule), hint)
        yield from _bits(rule, hint)
        yield from _scope(rule, hint)
        yield from _members(rule, hint)
    yield from _stream(loaded)


def _hint(rule: str, hint: TypeHint) -> Iterator[Fault]:
    """Yield faults of single keys of a rule's table."""
    path = ("types", rule)
    if hint.name is not None and not _WORD.match(hint.name):
        yield (*path, "name"), f"{hint.name!r} cannot name a field", "use letters, digits, '-' and '_'"
    if hint.padding is not None and not 0 <= hint.padding <= 0xFF:
        yield (*path, "padding"), f"{hint.padding} is not an octet", "write a number from 0 to 255"
    for key, partner in _without_partner(hint):
        yield (
            (*path, key),
            f"`{key}` has no effect without `{partner}`",
            f"add `{partner}`, or remove it",
        )
    if hint.multiple is not None and hint.multiple < 2:
        yield (*path, "multiple"), f"{hint.multiple} is no multiple", "write a number from 2"
    if not -(2**31) <= hint.plus < 2**32:
        yield (*path, "plus"), f"{hint.plus} cannot be added", "write a number from -2^31 to 2^32"
    if hint.checksum is not None and ":" in hint.checksum and not _FUNCTION.match(hint.checksum):
        yield (*path, "checksum"), f"{hint.checksum!r} does not name a function", "write module:function"


def _members(rule: str, hint: TypeHint) -> Iterator[Fault]:
    for member in hint.members:
        if not _WORD.match(member):
            yield (
                ("types", rule, "members"),
                f"{member!r} cannot name a member",
                "use letters, digits, '-' and '_'",
            )


def _timestamp(path: toml_places.Path, hint: TypeHint | BitTable) -> Iterator[Fault]:
    """Yield the faults of `timestamp` and `epoch`."""
    if hint.timestamp is None:
        if hint.epoch is not None:
            yield (
                (*path, "epoch"),
                "`epoch` has no effect without `timestamp`",
                'add `timestamp`, as in timestamp = "ms", or remove it',
            )
        return
    if hint.unit is not None:
        yield (*path, "unit"), "`unit` and `timestamp` both say the unit", "remove `unit`"
    try:
        read_epoch(hint.epoch)
    except ValueError:
        yield (
            (*path, "epoch"),
            f"{hint.epoch!r} is no date or date-time in UTC",
            'write epoch = "1900-01-01" or epoch = "1980-01-06T12:00:00Z"',
        )


def _bits(rule: str, hint: TypeHint) -> Iterator[Fault]:
    """Yield faults of names of bits, and of keys that do not apply to an integer made of bits."""
    if not hint.bits:
        return
    for name, _, bits in hint.bit_tables():
        for word in (name, *bits.members):
            if not _WORD.match(word):
                yield (
                    ("types", rule, "bits", name),
                    f"{word!r} cannot name bits",
                    "use letters, digits, '-' and '_'",
                )
        for key, given in (("plus", bits.plus), ("counting", bits.counting)):
            if given and not bits.counts:
                yield (
                    ("types", rule, "bits", name, key),
                    f"`{key}` has no effect without `counts`",
                    "add `counts`",
                )
        if not -(2**31) <= bits.plus < 2**32:
            yield (
                ("types", rule, "bits", name, "plus"),
                f"{bits.plus} cannot be added",
                "write a number from -2^31 to 2^32",
            )
        yield from _timestamp(("types", rule, "bits", name), bits)
    for key in _NOT_OF_BITS:
        if getattr(hint, key) != getattr(NOTHING_SAID, key):
            yield (
                ("types", rule, key),
                f"`{key}` does not apply to a rule with `bits`",
                "write it for the bits, or remove it",
            )


def _scope(rule: str, hint: TypeHint) -> Iterator[Fault]:
    """Yield keys that a size cannot have, because its octets say how long other values are."""
    if hint.scope not in ("next", "rest"):
        return
    given = {key: bool(getattr(hint, key)) for key in ("signed", "counts", "checksum", "members")}
    given["constant"] = hint.constant is not None
    given["type"] = hint.type not in (None, "integer", "varint", "decimal", "hexadecimal")
    for key, is_given in given.items():
        if is_given:
            yield (
                ("types", rule, key),
                f"`{key}` does not apply to a size with `scope`",
                'remove one of them, or write scope = "none"',
            )


def _without_partner(hint: TypeHint) -> Iterator[tuple[str, str]]:
    """Yield each key that only changes what another key says, if that is missing, with the other key."""
    pairs = (
        ("plus", hint.plus != 0, "counts", bool(hint.counts)),
        ("counting", hint.counting is not None, "counts", bool(hint.counts)),
        ("over", bool(hint.over), "checksum", hint.checksum is not None),
        ("multiple", hint.multiple is not None, 'type = "padding"', hint.type == "padding"),
        ("closed", hint.closed, "members", bool(hint.members)),
    )
    for key, is_given, partner, has_partner in pairs:
        if is_given and not has_partner:
            yield key, partner


def _stream(loaded: LoadedProfile) -> Iterator[Fault]:
    stream = loaded.profile.stream
    if stream is None:
        return
    if stream.units is not None:
        if stream != StreamTable(units=stream.units):
            message = "`units` cannot be combined with the other keys, which describe parts with sizes"
            yield ("stream", "units"), message, "remove `units` or the other keys"
        return
    if not stream.magics or not all(_HEX.match(magic) for magic in stream.magics):
        yield (
            ("stream", "magics"),
            "a magic must be octets in lower-case hexadecimal",
            'write: magics = ["ffee0012"]',
        )
    elif len({len(magic) for magic in stream.magics}) > 1:
        yield (
            ("stream", "magics"),
            "the magics have different lengths",
            "write the same number of digits for each",
        )
    for key, width in (("length_octets", stream.length_octets), ("long_octets", stream.long_octets)):
        if width not in WIDTHS:
            yield ("stream", key), f"a length of {width} octets is not supported", "write 1, 2, 4 or 8"
    if not 1 <= stream.escape <= 255:
        yield (
            ("stream", "escape"),
            f"{stream.escape} is not an octet from 1 to 255",
            "write a number from 1 to 255",
        )
