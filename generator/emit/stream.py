"""Emitter of ``stream.py``, for a protocol whose messages are also sent on a byte stream."""

from __future__ import annotations

from specwire.generator import ir
from specwire.generator.emit.python import octets_literal
from specwire.generator.emit.write import Emitter, header, render
from specwire.generator.passes.shapes import takes_sender


def emit(protocol: ir.Protocol) -> str:
    """Return the source of the module; empty for a protocol without a stream."""
    stream = protocol.stream
    if stream is None:
        return ""
    parts = isinstance(stream, ir.Stream)
    framing = "PartFraming" if parts else "UnitFraming"
    heads = isinstance(stream, ir.UnitStream) and stream.heads
    return render(
        "stream.py.j2",
        header=header(protocol, f"{protocol.edition}: messages on a byte stream."),
        protocol=protocol,
        framing=framing,
        names=sorted(["MessageStream", framing, *(["Head"] if heads else [])]),
        settings=_part_settings(stream) if isinstance(stream, ir.Stream) else _unit_settings(stream),
        measured=not parts and not heads,
        by_sender=takes_sender(protocol),
        counted="all parts with their sizes" if parts else "all of its octets",
    )


def _part_settings(stream: ir.Stream) -> list[tuple[str, str]]:
    magics = "".join(f"{octets_literal(bytes.fromhex(magic))}, " for magic in stream.magics)
    return [
        ("magics", f"({magics})"),
        ("length_octets", str(stream.length_octets)),
        ("escape", str(stream.escape)),
        ("long_octets", str(stream.long_octets)),
    ]


def _unit_settings(stream: ir.UnitStream) -> list[tuple[str, str]]:
    if not stream.heads:
        return [("layout", "LAYOUT")]
    heads = "".join(f"{_head(head)}, " for head in stream.heads)
    return [("heads", f"({heads})")]


def _head(head: ir.UnitHead) -> str:
    numbers = (("skip", head.skip), ("size_octets", head.size_octets), ("octets", head.octets))
    listed = "".join(f", {name}={number}" for name, number in numbers if number)
    return f"Head({octets_literal(bytes.fromhex(head.prefix))}{listed})"


EMITTER = Emitter("stream.py", emit, requires=("codec",))
