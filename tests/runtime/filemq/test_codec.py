"""The codec: frames as the dialect has them, and each command counted by its name."""

from __future__ import annotations

import pytest

from specwire.generated import filemq, libfilemq
from specwire.generated.errors import DecodeError
from specwire.runtime.filemq.codec import DIALECTS, FILEMQ, LIBFILEMQ, FilemqCodec
from specwire.runtime.filemq.events import Counters
from specwire.runtime.kernel.events import PeerId

PEER = PeerId("server-1")


@pytest.mark.parametrize("protocol", DIALECTS)
def test_frames_are_those_of_the_dialect(protocol: str) -> None:
    dialect, codec = DIALECTS[protocol], FilemqCodec(DIALECTS[protocol], Counters())
    command = filemq.Icanhaz(path="/a", options=(("RESYNC", "1"),), cache=(("b", "AA"),))
    frames = [*codec.encode(PEER, command)]
    assert frames == dialect.encode(command)
    assert list(codec.decode(PEER, frames)) == [command]


def test_commands_are_counted_by_name_and_direction() -> None:
    codec = FilemqCodec(FILEMQ, counters := Counters())
    for frames in (filemq.Ohai().encode(), filemq.Nom(credit=1).encode(), filemq.Nom(credit=2).encode()):
        codec.decode(PEER, frames)
    codec.encode(PEER, filemq.Srsly(reason="no"))
    assert counters.commands_in == {"OHAI": 1, "NOM": 2}
    assert counters.commands_out == {"SRSLY": 1}


def test_a_message_of_two_commands_counts_as_two() -> None:
    """The C server's last chunk ends its file in the same message."""
    counters = Counters()
    last = libfilemq.Cheezburger(
        sequence=0, operation=1, filename="/a", offset=0, eof=1, headers=(), chunk=b"content"
    )
    FilemqCodec(LIBFILEMQ, counters).decode(PEER, last.encode())
    assert counters.commands_in == {"CHEEZBURGER": 2}


def test_what_is_no_command_counts_as_malformed() -> None:
    codec = FilemqCodec(FILEMQ, counters := Counters())
    with pytest.raises(DecodeError):
        codec.decode(PEER, [b"\xaa\xa3\x07"])
    assert (counters.malformed, counters.commands_in) == (1, {})
