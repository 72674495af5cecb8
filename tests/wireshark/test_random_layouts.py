"""Random layouts of every kind: the dissector says the same as the generated codec, in the same words."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from specwire.generated.errors import DecodeError
from specwire.generator import ir
from tests.generated import strategies
from tests.generated.agreement import mutated, truncations
from tests.generator import layouts
from tests.generator.test_layouts import generated
from tests.wireshark.traffic import Connection, message, write_pcap
from tests.wireshark.tshark import NEEDS_TSHARK, dissect, write_dissectors

PROTOCOLS = 5
MESSAGES = 4
SPOILT = 40
LONGEST = 8000
"""Octets of a message: one segment holds it, so that each message has a packet."""

ONCE = settings(
    max_examples=2,  # the first is the smallest there is
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def fault(module: object, frames: list[bytes]) -> DecodeError | None:
    """Return what the codec refuses frames with, None where it reads them."""
    try:
        module.decode(frames)  # type: ignore[attr-defined]
    except DecodeError as error:
        return error
    return None


@NEEDS_TSHARK
@pytest.mark.slow
@ONCE
@given(st.lists(layouts.protocols, min_size=PROTOCOLS, max_size=PROTOCOLS), st.data())
def test_a_dissector_says_what_the_codec_says(drawn: list[ir.Protocol], data: st.DataObject) -> None:
    wanted: list[tuple[str, list[bytes], DecodeError | None]] = []
    connections, options, named = [], [], []
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.dont_write_bytecode", True)
        for number, protocol in enumerate(drawn):
            named.append(msgspec.structs.replace(protocol, name=f"demo{number}", title=f"Demo {number}"))
            connections.append(Connection(port=50000 + number, server=6000 + number))
            options += ["-o", f"demo{number}.ports:{6000 + number}"]
            chance = Random(number)
            with generated(Path(folder, "packages"), named[-1]) as module:
                made = [data.draw(strategies.messages(module)).encode() for _ in range(MESSAGES)]
                rows = [frames for frames in made if sum(map(len, frames)) < LONGEST]
                for frames in tuple(rows):
                    cut = [list(frames) for frames in truncations(tuple(frames))]
                    rows += chance.sample(cut, min(len(cut), SPOILT))
                    rows += [mutated(tuple(frames), chance) for _ in range(SPOILT)]
                rows = [frames for frames in rows if frames]
                wanted += [(named[-1].name, frames, fault(module, frames)) for frames in rows]
            for frames in rows:
                connections[-1].send(message(frames), sizes=(65000,))
        write_pcap(Path(folder, "all.pcap"), connections)
        shown = dissect(Path(folder, "all.pcap"), write_dissectors(Path(folder), named), *options)
    for (name, frames, error), packet in zip(wanted, shown, strict=True):
        assert packet.layers()[-1] == name, frames
        if error is None or error.message_name is not None:
            assert packet.faults[:1] == ([] if error is None else [str(error)]), (name, frames)
        else:
            assert packet.faults, (name, frames)
