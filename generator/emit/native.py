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

from specwire.generator import ir
from specwire.generator.emit.native_classes import message_class, record_class
from specwire.generator.emit.native_decoding import Reader
from specwire.generator.emit.native_dispatch import kind_function
from specwire.generator.emit.native_frames import many_frames, many_function
from specwire.generator.emit.native_functions import put_function, skip_function, take_function
from specwire.generator.emit.native_types import Composite, composites, lazies
from specwire.generator.emit.records import lends_slices
from specwire.generator.emit.write import Emitter, header, render
from specwire.generator.passes.shapes import takes_sender

SUPPORT = ("native.pxd", "native.pyx", "native_octets.pxd", "native_reading.pxd", "native_writing.pxd")
"""Support files that are compiled with a package or that it is compiled against."""


@dataclass(frozen=True, slots=True)
class _Function:
    """Functions of a composite type."""

    name: str
    result: str
    take: str
    put: str
    skip: str


def emit(protocol: ir.Protocol) -> str:
    """Return the source of a package's compiled codec."""
    text = _source(protocol)
    return text.replace(_NO_DIGEST, native_digest(protocol, text))


def native_digest(protocol: ir.Protocol, text: str | None = None) -> str:
    """Return the digest of the compiled codec, its ``BUILD``; a codec with another digest is out of date.

    It covers the emitted source without the docstring at its top, and the support files. `text` is
    the source if the caller already has it.
    """
    code = (_source(protocol) if text is None else text).replace(_header(protocol), "")
    digest = hashlib.sha256(code.encode())
    for name in SUPPORT:
        digest.update(files("specwire.generator").joinpath("support", name).read_bytes())
    return digest.hexdigest()[:16]


_NO_DIGEST = "0000-digest-0000"

_OFFERED = {
    "libc.stdint": ("uint8_t", "uint16_t", "uint32_t", "uint64_t"),
    "libc.string": ("memcpy", "memset"),
    "specwire.generated.native": ("NativeMessage", "NativeRecord", "Signature", "enrol", "keep", "native"),
    "specwire.generated.native_octets": (
        "Run", "bytes_of", "fits", "frame_at", "frame_begins", "frame_is", "frame_of_terminated", "frame_of_text",
        "left", "number", "octets_of", "plain_count", "put_number", "run_of", "same", "text_of",
    ),
    "specwire.generated.native_reading": (
        "bytes_in", "divided_in", "divided_is_good", "skip", "split_fixed", "split_prefixed", "split_rest", "split_until",
        "strip", "strip_nul", "text_in", "text_is_good",
    ),
    "specwire.generated.native_writing": (
        "Writer", "begin", "drop", "finish", "insert_size", "put_content", "put_divided", "put_fixed_text", "put_integer",
        "put_literal", "put_padded", "put_terminated", "put_text", "put_text_until", "room", "written",
    ),
}  # fmt: skip
"""Names that emitted sources can import, by module; each source imports those that it uses."""


def _source(protocol: ir.Protocol) -> str:
    names = composites(protocol)
    by_sender = takes_sender(protocol)
    inner = [record_class(type, protocol, names) for type in names if isinstance(type, ir.RecordType)]
    classes = [
        message_class(message, number, protocol, names) for number, message in enumerate(protocol.messages, 1)
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
        "functions": _functions(protocol, names),
        "many": [
            (name, many_function(kind, type, Reader(protocol, names)))
            for (kind, type), name in many_frames(protocol).items()
        ],
        "kind": kind_function(protocol),
        "by_sender": by_sender,
        "views": lends_slices(protocol),
    }
    words = set(re.findall(r"\w+", render("native.pyx.j2", cimports=(), **view)))
    cimports = [(module, [name for name in offered if name in words]) for module, offered in _OFFERED.items()]
    return render("native.pyx.j2", cimports=[(module, found) for module, found in cimports if found], **view)


def _header(protocol: ir.Protocol) -> str:
    return header(protocol, f"{protocol.edition}: messages, and frames to messages and back, compiled.")


def _functions(protocol: ir.Protocol, names: dict[Composite, str]) -> list[_Function]:
    skipped = lazies(protocol)
    return [
        _Function(
            name=name,
            result=_result(type),
            take=take_function(type, protocol, names),
            put=put_function(type, protocol, names),
            skip=skip_function(type, protocol, names) if type in skipped else "",
        )
        for type, name in names.items()
    ]


def _result(type: Composite) -> str:
    if isinstance(type, ir.RecordType):
        return type.class_name
    return "object" if isinstance(type, ir.UnionType) else "tuple"


EMITTER = Emitter("_native.pyx", emit, requires=("codec",))
