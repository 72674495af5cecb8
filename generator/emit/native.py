"""Emitter of ``_native.pyx``: the codec in Cython, whose messages have C members.

It exports the names of the pure codec. Rare cases are passed to the pure codec: a view instead of
bytes, ``strict``, a value that does not fit, frames that are refused. So both builds raise the same
errors, and this one handles only the successful cases.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from specwire.generator import ir
from specwire.generator.emit.bodies import choice_function, choices, lends_slices, record_function
from specwire.generator.emit.native_classes import message_class, record_class
from specwire.generator.emit.native_decoding import take_choice, take_loop, take_record
from specwire.generator.emit.native_dispatch import kind_function
from specwire.generator.emit.native_encoding import put_choice, put_loop, put_record
from specwire.generator.emit.native_frames import take_frames
from specwire.generator.emit.native_names import Functions
from specwire.generator.emit.records import records
from specwire.generator.emit.write import Emitter, header, render
from specwire.generator.passes.shapes import takes_sender
from specwire.generator.plan.layouts import announcing_bits, layout_of
from specwire.generator.support.lowering import lower
from specwire.generator.support.plan import Plan

SUPPORT = (
    "native.pxd", "native.pyx", "native_numbers.pxd", "native_octets.pxd", "native_reading.pxd", "native_writing.pxd",
)  # fmt: skip
"""Support files that are compiled with a package or that it is compiled against."""
MATCHING = "native_matching.pxd"
"""Support file that only some packages are compiled against."""


@dataclass(frozen=True, slots=True)
class _Function:
    """Functions of values inside others, for the template."""

    name: str
    result: str
    take: str
    put: str
    skip: str = ""
    count: str = ""
    """Parameter of the reader for the number of items, if it is a loop."""


def emit(protocol: ir.Protocol) -> str:
    """Return the source of a package's compiled codec."""
    text = _source(protocol)
    return text.replace(_NO_DIGEST, native_digest(protocol, text))


def native_digest(protocol: ir.Protocol, text: str | None = None) -> str:
    """Return the digest of the compiled codec, its ``BUILD``; another one means it is out of date.

    It covers the emitted source without the docstring at its top, and the support files. `text` is
    the source if the caller already has it.
    """
    code = (_source(protocol) if text is None else text).replace(_header(protocol), "")
    digest = hashlib.sha256(code.encode())
    for name in support_files(code):
        digest.update(files("specwire.generator").joinpath("support", name).read_bytes())
    return digest.hexdigest()[:16]


def support_files(code: str) -> tuple[str, ...]:
    """Return the names of the support files that a source is compiled with or against."""
    return (*SUPPORT, MATCHING) if Path(MATCHING).stem in code else SUPPORT


_NO_DIGEST = "0000-digest-0000"

_OFFERED = {
    "libc.stdint": (
        "int8_t", "int16_t", "int32_t", "int64_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t",
    ),
    "libc.string": ("memcpy", "memset"),
    "specwire.generated.native": (
        "NativeMessage", "NativeRecord", "Signature", "checksum_of", "enrol", "keep", "native", "octets_of_uuid",
        "uuid_of",
    ),
    "specwire.generated.native_matching": (
        "begins_since", "is_before", "is_run", "number_folded", "same_folded", "split_run",
    ),
    "specwire.generated.native_numbers": (
        "COMPLEMENT", "MOST_OCTETS", "UNSIGNED", "ZIGZAG", "digits_at", "digits_in", "extended", "fits", "fits_signed",
        "float_in", "number", "number_little", "put_float", "put_number", "put_number_little", "varint_at", "varint_in",
    ),
    "specwire.generated.native_octets": (
        "Run", "append_octets", "append_text", "bytes_of", "frame_at", "frame_begins", "frame_is",
        "frame_of_terminated", "frame_of_text", "left", "octets_of", "plain_count", "run_of", "same",
    ),
    "specwire.generated.native_reading": (
        "bytes_in", "constant_at", "divided_in", "divided_is_good", "gap", "held", "held_run",
        "skip", "split", "split_rest", "split_until", "strip", "strip_nul", "take", "text_at", "text_in", "text_is_good",
    ),
    "specwire.generated.native_writing": (
        "Writer", "begin", "count_in", "drop", "finish", "insert", "insert_size", "put_content", "put_divided",
        "put_fixed_text", "put_held", "put_literal", "put_padded", "put_padding", "put_terminated", "put_text",
        "put_text_until", "room", "written",
    ),
}  # fmt: skip
"""Names that emitted sources can import, by module; each source imports those that it uses."""


def _source(protocol: ir.Protocol) -> str:
    plan = lower(layout_of(protocol))
    functions = Functions(plan, announcing_bits(protocol))
    bodies = {record.class_name: record for record in plan.records}
    inner = [record_class(type, bodies[type.class_name], protocol, functions) for type in records(protocol)]
    classes = [
        message_class(message, found, number, protocol, functions)
        for number, (message, found) in enumerate(zip(protocol.messages, plan.messages, strict=True), 1)
    ]
    exported = [enum.class_name for enum in protocol.enums] + [
        constant.name for constant in protocol.constants
    ]
    exported += ["EDITION", *(["Flags"] if protocol.flags else [])]
    view: dict[str, object] = {
        "header": _header(protocol),
        "digest": _NO_DIGEST,
        "exported": sorted(exported),
        "records": inner,
        "classes": classes,
        "functions": _functions(plan, functions),
        "many": [
            (name, take_frames(body, functions, delimiter))
            for (delimiter, body), name in functions.many.items()
        ],
        "kind": kind_function(protocol),
        "by_sender": takes_sender(protocol),
        "views": lends_slices(plan),
        "depth": bool(plan.max_depth),
    }
    words = set(re.findall(r"\w+", render("native.pyx.j2", cimports=(), **view)))
    cimports = [(module, [name for name in offered if name in words]) for module, offered in _OFFERED.items()]
    return render("native.pyx.j2", cimports=[(module, found) for module, found in cimports if found], **view)


def _header(protocol: ir.Protocol) -> str:
    return header(protocol, f"{protocol.edition}: messages, and frames to messages and back, compiled.")


def _functions(plan: Plan, functions: Functions) -> list[_Function]:
    found: list[_Function] = []
    for record in plan.records:
        name, take, put = record.class_name, take_record(record, functions), put_record(record, functions)
        found.append(_Function(record_function(name), name, take, put))
    for choice in choices(plan):
        take, put = take_choice(choice, functions), put_choice(choice, functions)
        found.append(_Function(choice_function(choice.options), "object", take, put))
    for loop, name in functions.loops.items():
        skip = take_loop(loop, functions, keep=False) if name in functions.held else ""
        take, put = take_loop(loop, functions), put_loop(loop, functions)
        found.append(_Function(name, "tuple", take, put, skip, ", uint64_t count"))
    return found


EMITTER = Emitter("_native.pyx", emit, requires=("codec",))
