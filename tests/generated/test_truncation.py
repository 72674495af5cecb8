"""Every message cut at every octet: the refusal names the field that the cut goes through, and its octet.

What it must say is worked out from the IR; see ``places.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from specwire.generated.errors import DecodeError
from specwire.generator import ir
from specwire.generator.pipeline import compile_protocol
from tests.generated.builds import package
from tests.generated.places import Fault, fault, octets_of, written
from tests.generated.vectors import PACKAGES

GRAMMARS = Path(__file__).resolve().parents[2] / "grammars"


@cache
def protocol(name: str) -> ir.Protocol:
    return compile_protocol(GRAMMARS / name).protocol


@dataclass(frozen=True)
class Unnamed:
    """What an error may say where the octets that name the message are cut: other names for the same place."""

    messages: set[str | None]
    """The message itself, none, or one that other messages' names make more of."""
    fields: set[str | None]
    """The fields that a message can begin with."""

    @classmethod
    def of(cls, protocol: ir.Protocol, message: ir.Message) -> Unnamed:
        others = protocol.messages
        return cls(
            {message.name, None, *(other.name for other in others if other.shadowed)},
            {other.fields[0].name for other in others},
        )


@pytest.mark.parametrize("name", PACKAGES)
def test_every_field_at_every_octet(name: str, build: str) -> None:
    module = package(name, build)
    cut_through: set[tuple[str, str]] = set()
    for message in protocol(name).messages:
        unnamed = Unnamed.of(protocol(name), message)
        for frames in written(protocol(name), message):
            octets = [octets_of(frame) for frame in frames]
            assert type(module.decode(octets)).__name__ == message.class_name
            for index, frame in enumerate(frames):
                for length in range(len(octets[index])):
                    cut = [*octets[:index], octets[index][:length], *octets[index + 1 :]]
                    check(module, cut, index, fault(frame, length), unnamed)
                cut_through |= {(message.name, top(piece.path)) for piece in frame}
    assert cut_through == {
        (message.name, field.name) for message in protocol(name).messages for field in message.fields
    }


def top(path: str) -> str:
    """Return the field of a message that a path is in."""
    return path.partition(".")[0].partition("[")[0]


def check(
    module: ModuleType, frames: list[bytes], index: int, wanted: Fault | None, unnamed: Unnamed
) -> None:
    """Check what the package says of frames whose number `index` was cut."""
    if wanted is None:
        module.decode(frames)
        return
    with pytest.raises(DecodeError) as caught:
        module.decode(frames)
    error = caught.value
    fields = {wanted.field} | (unnamed.fields if error.message_name is None and not frames[index] else set())
    assert error.field in fields, frames
    assert error.offset == wanted.offset, frames
    assert error.message_name in unnamed.messages, frames
    if wanted.field is None:
        assert error.kind == "frames"
    else:
        assert (error.frame, error.kind in ("length", "count", "constant", "tag")) == (index, True)
