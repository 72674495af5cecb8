"""Checks that a decoder can separate the fields and parts of a message.

Emitters rely on these checks: names differ, a value without an end is the last of its frame, and
the frames that were read so far determine whether the next part is present.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec

from specwire.generator import ir
from specwire.generator.abnf.syntax import Rule
from specwire.generator.diagnostics import Diagnostics
from specwire.generator.passes.field_names import shown
from specwire.generator.passes.firsts import first_octets, last_octets
from specwire.generator.passes.layouts import is_open, least_octets


def check_fields(parts: Sequence[ir.Part], rule: Rule, diagnostics: Diagnostics) -> None:
    """Report frames in which the end of a value is not defined."""
    for part in parts:
        if isinstance(part, ir.Frame):
            check_run(part.fields, rule, diagnostics)


def check_run(fields: Sequence[ir.Field], rule: Rule, diagnostics: Diagnostics) -> None:
    """Report a run of fields that cannot be separated: one without an end, or one that must be
    alone."""
    counted = {field.type.counts[-1] for field in fields if isinstance(field.type, ir.CounterType)}
    for position, (field, after) in enumerate(pairwise(fields)):
        if last_octets(field.type) & first_octets(fields[position + 1 :]):
            diagnostics.error(
                "E430",
                rule.name_span,
                f"{shown(field)} in '{rule}' varies in length, and {shown(after)} may begin with one of its "
                "characters",
                "specwire needs something after it that it cannot contain, such as a constant, or a fixed "
                "number of digits",
            )
        alone = isinstance(field.type, ir.JsonType | ir.KeywordType)
        if is_open(field.type) and field.name not in counted and not alone:
            diagnostics.error(
                "E409",
                rule.name_span,
                f"{shown(field)} in message '{rule}' has no end, and {shown(after)} follows it",
                f"specwire needs a length before '{field.name}', a constant that it cannot contain after "
                "it, or frame = true under [types] to make it a separate frame",
            )
        if field.optional and not after.optional:
            diagnostics.error(
                "E405",
                rule.name_span,
                f"message '{rule}' has an optional element inside a frame, and {shown(after)} follows it",
                "specwire cannot express an optional element with others after it: only the last values "
                "of a frame can be absent",
            )
    sizes = [field for field in fields if isinstance(field.type, ir.SizeType)]
    if len(sizes) > 1:
        diagnostics.error(
            "E409",
            rule.name_span,
            f"'{sizes[0].name}' and '{sizes[1].name}' in '{rule}' are both sizes of the values after them",
            "specwire cannot express two sizes in one run: move the inner one and its values to a "
            "separate rule in an erratum, or declare the `scope` of one",
        )
    _check_size(fields, rule, diagnostics)
    for field in fields:
        if isinstance(field.type, ir.JsonType | ir.KeywordType) and len(fields) > 1:
            diagnostics.error(
                "E409",
                rule.name_span,
                f"{shown(field)} in message '{rule}' must be a separate frame",
                "give each keyword a rule that ends with the constant after it, or write frame = true under [types]"
                if isinstance(field.type, ir.KeywordType)
                else "write frame = true for it under [types] in the profile",
            )


def _check_size(fields: Sequence[ir.Field], rule: Rule, diagnostics: Diagnostics) -> None:
    """Report a size that is too small even for the shortest values after it."""
    for number, field in enumerate(fields):
        if not isinstance(field.type, ir.SizeType):
            continue
        least = sum(least_octets(after.type) for after in fields[number + 1 :] if not after.optional)
        most = max(256**form.octets - 1 for form in field.type.forms)
        if least > most:
            diagnostics.error(
                "E421",
                rule.name_span,
                f"at least {least} octets follow size '{field.name}' in '{rule}', which is at most {most}",
                "no message can be valid; if the document is wrong, correct it with an erratum in the "
                "profile",
            )


def check_parts(parts: Sequence[ir.Part], rule: Rule, diagnostics: Diagnostics) -> None:
    """Report parts whose presence is not defined."""
    for sentence, help in _faults(parts):
        diagnostics.error("E410", rule.name_span, f"message '{rule}': {sentence}", help)


def without_idle_flags(parts: Sequence[ir.Part]) -> tuple[ir.Part, ...]:
    """Return the parts of a message; if it has no flags, parts that are always present lose
    theirs."""
    if any(_is_mask(field) for part in parts for field in _fields(part)):
        return tuple(parts)
    return tuple(
        msgspec.structs.replace(part, presence=ir.Always())
        if isinstance(part, ir.Frame | ir.Stack) and isinstance(part.presence, ir.Always)
        else part
        for part in parts
    )


def _faults(parts: Sequence[ir.Part]) -> Iterator[tuple[str, str]]:
    if not parts:
        yield "it has no frame", "add a frame to the message: it needs at least one"
    flags = [(part, field) for part in parts for field in _fields(part) if _is_mask(field)]
    if len(flags) > 1:
        yield (
            f"'{flags[0][1].name}' and '{flags[1][1].name}' are both bit masks",
            'specwire can express one in a message; write type = "integer" for the other under [types]',
        )
    if any(not _is_certain(part) for part, _ in flags):
        yield (
            "its flags are in an optional frame",
            "specwire can express flags only in a frame that is always present",
        )
    for part in parts:
        if isinstance(part, ir.Frame) and not _is_certain(part):
            yield from _announced_frame(part)
        if isinstance(part, ir.Frame | ir.Stack) and isinstance(part.presence, ir.Announced) and not flags:
            yield (
                f"a flag announces '{part.name}', but the message has no flags",
                "remove the flag from `presence` in the profile",
            )
    yield from _uncountable(parts)


def _announced_frame(part: ir.Frame) -> Iterator[tuple[str, str]]:
    """Yield the faults of an optional frame, or of a frame that is always present but has a
    flag."""
    fields = _fields(part)
    optional = not isinstance(part.presence, ir.Always)
    if len(fields) > 1:
        yield (
            f"{'optional' if optional else 'announced'} frame '{part.name}' has more than one field",
            'specwire cannot express that; declare the frame as one value, of type "octets"',
        )
    elif optional and fields and fields[0].implied:
        yield (
            f"optional frame '{part.name}' is a constant, so no field can show whether it is present",
            "specwire cannot express that; declare a `type` for it in the profile",
        )


def _uncountable(parts: Sequence[ir.Part]) -> Iterator[tuple[str, str]]:
    """Yield frames that cannot be identified by their number: only trailing single frames can be
    counted."""
    uncertain = [part for part in parts if not _is_certain(part)]
    counted = [part for part in uncertain if _is_counted(part)]
    if counted:
        after = parts[parts.index(counted[0]) :]
        if len(after) != len(counted) or len(uncertain) != len(counted):
            yield (
                f"nothing defines whether '{counted[0].name}' is present",
                "specwire can express absent frames only at the end; name a flag under `presence`",
            )
        elif any(isinstance(part, ir.Stack) for part in counted):
            yield (
                f"nothing defines whether '{counted[0].name}' is present",
                "name a flag under `presence` in the profile",
            )
    rest = any(isinstance(part, ir.Rest) for part in parts)
    uncounted = [part for part in uncertain if not _is_delimited(part)]
    if rest and len(uncounted) > 1:
        yield (
            f"any number of frames follow '{uncounted[0].name}', which can be absent or repeated",
            "specwire can express any number of frames only after frames that are always present",
        )


def _is_mask(field: ir.Field) -> bool:
    return isinstance(field.type, ir.IntegerType) and field.type.bitmask


def _is_counted(part: ir.Part) -> bool:
    return isinstance(part, ir.Frame | ir.Stack) and isinstance(part.presence, ir.Counted)


def _is_delimited(part: ir.Part) -> bool:
    """Whether a part is frames that always end with a delimiter."""
    return isinstance(part, ir.Stack) and isinstance(part.presence, ir.Always) and not part.presence.mask


def _is_certain(part: ir.Part) -> bool:
    """Whether a part is always exactly one frame."""
    return isinstance(part, ir.Frame) and isinstance(part.presence, ir.Always) and not part.presence.mask


def _fields(part: ir.Part) -> tuple[ir.Field, ...]:
    return part.fields if isinstance(part, ir.Frame) else (part.field,)
