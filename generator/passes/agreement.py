"""Whether the fields and parts of a message go together: what a decoder could not take apart is reported.

Everything an emitter relies on beyond the types is checked here: names differ, a value without an end is
the last of its frame, and it can be told from the frames before it which parts a message has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec

from specwire.generator import ir
from specwire.generator.diagnostics import Diagnostics
from specwire.generator.passes.layouts import is_open, least_octets
from specwire.generator.syntax import Rule


def check_fields(parts: Sequence[ir.Part], rule: Rule, diagnostics: Diagnostics) -> None:
    """Report frames that do not say where a value ends."""
    for part in parts:
        if isinstance(part, ir.Frame):
            check_run(part.fields, rule, diagnostics)


def check_run(fields: Sequence[ir.Field], rule: Rule, diagnostics: Diagnostics) -> None:
    """Report a run of fields that cannot be taken apart: a value without an end in it, or what goes with no other."""
    for field, after in pairwise(fields):
        if is_open(field.type):
            diagnostics.error(
                "E409", rule.name_span,
                f"'{field.name}' in message '{rule}' has no end, and '{after.name}' follows it",
                f"specwire needs a length before '{field.name}', a constant that it cannot contain after it, or frame = true under [types] to make it a separate frame",
            )  # fmt: skip
        if field.optional and not after.optional:
            diagnostics.error(
                "E405", rule.name_span, f"message '{rule}' has an optional element inside a frame, and '{after.name}' follows it",
                "specwire cannot express an optional element with others after it: only the last values of a frame can be absent",
            )  # fmt: skip
    sizes = [field for field in fields if isinstance(field.type, ir.SizeType)]
    if len(sizes) > 1:
        diagnostics.error(
            "E409", rule.name_span, f"'{sizes[0].name}' and '{sizes[1].name}' in '{rule}' both cover what follows them",
            "specwire cannot express two sizes in one run: move the inner one and its values to a separate rule in an erratum, or declare the `scope` of one",
        )  # fmt: skip
    _check_size(fields, rule, diagnostics)
    for field in fields:
        if isinstance(field.type, ir.JsonType | ir.KeywordType) and len(fields) > 1:
            diagnostics.error(
                "E409", rule.name_span, f"'{field.name}' in message '{rule}' has to fill a frame of its own",
                "declare it to be a frame, 'frame = true' under [types] in the profile",
            )  # fmt: skip


def _check_size(fields: Sequence[ir.Field], rule: Rule, diagnostics: Diagnostics) -> None:
    """Report a size that cannot say how many octets follow it even where these are as few as they can be."""
    for number, field in enumerate(fields):
        if not isinstance(field.type, ir.SizeType):
            continue
        least = sum(least_octets(after.type) for after in fields[number + 1 :] if not after.optional)
        most = max(256**form.octets - 1 for form in field.type.forms)
        if least > most:
            diagnostics.error(
                "E421", rule.name_span, f"at least {least} octets follow '{field.name}' in '{rule}', which goes to {most}",
                "no message can be valid; correct an error of the document with an erratum in the profile",
            )  # fmt: skip


def check_parts(parts: Sequence[ir.Part], rule: Rule, diagnostics: Diagnostics) -> None:
    """Report parts of which nothing tells whether they are there."""
    for sentence, help in _faults(parts):
        diagnostics.error("E410", rule.name_span, f"message '{rule}': {sentence}", help)


def without_idle_flags(parts: Sequence[ir.Part]) -> tuple[ir.Part, ...]:
    """Return the parts of a message; what is always there needs no flag where the message has no flags."""
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
        yield "it has no frame", "a message has at least one frame"
    flags = [(part, field) for part in parts for field in _fields(part) if _is_mask(field)]
    if len(flags) > 1:
        yield (
            f"'{flags[0][1].name}' and '{flags[1][1].name}' are both bit masks",
            'a message has one; declare the other under [types] in the profile as type = "integer"',
        )
    if any(not _is_certain(part) for part, _ in flags):
        yield (
            "its flags are in a frame that is not always there",
            "specwire can express flags only in a frame that is always there",
        )
    for part in parts:
        if isinstance(part, ir.Frame) and not _is_certain(part):
            yield from _announced_frame(part)
        if isinstance(part, ir.Frame | ir.Stack) and isinstance(part.presence, ir.Announced) and not flags:
            yield (
                f"a flag announces '{part.name}', and the message has no flags",
                "name no flag for it in the profile",
            )
    yield from _uncountable(parts)


def _announced_frame(part: ir.Frame) -> Iterator[tuple[str, str]]:
    """Yield the faults of a frame that may be absent, or that a flag announces although it is always there."""
    fields = _fields(part)
    optional = not isinstance(part.presence, ir.Always)
    if len(fields) > 1:
        yield (
            f"{'optional' if optional else 'announced'} frame '{part.name}' has more than one field",
            'specwire cannot express that; declare the frame as one value, of type "octets"',
        )
    elif optional and fields and fields[0].implied:
        yield (
            f"optional frame '{part.name}' is a constant: no field says that it is there",
            "specwire cannot express that; declare a `type` for it in the profile",
        )


def _uncountable(parts: Sequence[ir.Part]) -> Iterator[tuple[str, str]]:
    """Frames whose number does not tell them apart: only trailing single frames can be counted."""
    uncertain = [part for part in parts if not _is_certain(part)]
    counted = [part for part in uncertain if _is_counted(part)]
    if counted:
        after = parts[parts.index(counted[0]) :]
        if len(after) != len(counted) or len(uncertain) != len(counted):
            yield (
                f"nothing says whether '{counted[0].name}' is there",
                "specwire can express absent frames only at the end; name a flag under `presence` in the profile",
            )
        elif any(isinstance(part, ir.Stack) for part in counted):
            yield (
                f"nothing says whether '{counted[0].name}' is there",
                "name a flag under `presence` in the profile",
            )
    rest = any(isinstance(part, ir.Rest) for part in parts)
    if rest and len(uncertain) > 1:
        yield (
            f"frames of any number follow '{uncertain[0].name}', of which the number is not certain either",
            "specwire can express any number of frames only after frames that are always there",
        )


def _is_mask(field: ir.Field) -> bool:
    return isinstance(field.type, ir.IntegerType) and field.type.bitmask


def _is_counted(part: ir.Part) -> bool:
    return isinstance(part, ir.Frame | ir.Stack) and isinstance(part.presence, ir.Counted)


def _is_certain(part: ir.Part) -> bool:
    """Whether a part is one frame, always."""
    return isinstance(part, ir.Frame) and isinstance(part.presence, ir.Always) and not part.presence.mask


def _fields(part: ir.Part) -> tuple[ir.Field, ...]:
    return part.fields if isinstance(part, ir.Frame) else (part.field,)
