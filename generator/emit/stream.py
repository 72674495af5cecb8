"""Writes ``stream.py`` for a protocol whose messages also travel on a byte stream."""

from __future__ import annotations

from specwire.generator import ir
from specwire.generator.emit.write import Emitter, header, render


def emit(protocol: ir.Protocol) -> str:
    """Return the source of the module, an empty text for a protocol without a stream."""
    stream = protocol.stream
    if stream is None:
        return ""
    return render(
        "stream.py.j2",
        header=header(protocol, f"{protocol.edition}: messages on a byte stream."),
        protocol=protocol,
        stream=stream,
        magics=tuple(bytes.fromhex(magic) for magic in stream.magics),
    )


EMITTER = Emitter("stream.py", emit)
