"""Emitter of ``<protocol>.lua``: a self-contained dissector for Wireshark and tshark.

The file contains the layout of the messages as tables, and the code that walks over them. That walk
is the same as in the slow path of decoding, so faults have the same error texts. The file also
contains ZMTP, the framing of ZeroMQ on TCP, generated from the grammar ``zmtp`` of specwire; the
dissector for ``zmtp`` contains nothing else. See docs/how-to/wireshark.md for its use.

    lua         values and comments of Lua
    fields      names of Wireshark filter fields
    layout      messages as tables
    templates/wireshark     handwritten part: octets, places, values, runs, walk, tree, ZMTP
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from specwire.generator import ir
from specwire.generator.emit.write import Emitter, notice, render

if TYPE_CHECKING:
    from specwire.generator.emit.wireshark.lua import Lua

ABOUT = """\
A dissector for Wireshark and tshark. Put the file into the folder of personal Lua plugins (Help, About, Folders),
or name it on the command line: tshark -X lua_script:{name}.lua. Connections are known by their ZMTP greeting; where
a capture begins later, name the port: -o {name}.ports:5555, or Decode As ZMTP."""

CARRYING = {"more": "message-more", "last": "message-last"}
"""Messages of ZMTP's grammar that carry frames: with more frames to follow, and the last."""

COMMAND = "command"
"""Message of ZMTP's grammar that is a command of any name."""


def emit(protocol: ir.Protocol) -> dict[str, str]:
    """Return the dissector of a protocol."""
    # Every run loads all emitters, so import the dependencies of this one on use.
    from specwire.generator.emit.wireshark.layout import protocol_table
    from specwire.generator.emit.wireshark.lua import comment, literal

    zmtp = _zmtp()
    text = render(
        "wireshark/dissector.lua.j2",
        notice=comment(notice(protocol)),
        about=comment(ABOUT.format(name=protocol.name)),
        framing_source=f"{zmtp.name} ({zmtp.edition}), digest sha256:{zmtp.digest[:12]}",
        framing=literal(protocol_table(zmtp) | _framing(zmtp)),
        edition=comment(protocol.edition).removeprefix("-- "),
        layout="" if protocol.name == zmtp.name else literal(protocol_table(protocol)),
    )
    return {f"{protocol.name}.lua": text}


@cache
def _zmtp() -> ir.Protocol:
    """Return the protocol that frames all others."""
    from specwire.generator.pipeline import compile_protocol

    with resources.as_file(resources.files("specwire") / "grammars" / "zmtp") as folder:
        return compile_protocol(Path(folder)).protocol


def _framing(zmtp: ir.Protocol) -> dict[str, Lua]:
    """Return how units begin on the stream, and which of them carry frames."""
    assert isinstance(zmtp.stream, ir.UnitStream)
    heads: list[Lua] = [
        {
            "prefix": head.prefix,
            "skip": head.skip,
            "size_octets": head.size_octets,
            "octets": head.octets,
            "message": _only_message(zmtp, head.prefix),
        }
        for head in zmtp.stream.heads
    ]
    command = next(number for number, message in enumerate(zmtp.messages, 1) if message.name == COMMAND)
    return {"heads": heads, "command": command, **CARRYING}


def _only_message(zmtp: ir.Protocol, prefix: str) -> int | None:
    """Return the number of the only message that begins with `prefix`, None if there are several."""
    numbers = [
        number
        for number, message in enumerate(zmtp.messages, 1)
        if any(tag.startswith(prefix) for tag in message.tags)
    ]
    return numbers[0] if len(numbers) == 1 else None


EMITTER = Emitter(None, emit, default=False)
