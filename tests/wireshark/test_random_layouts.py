"""Random layouts of every kind: the dissector says the same as the generated codec, in the same words."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from specwire.generated.errors import DecodeError
from specwire.generator import ir
from tests.generated.agreement import mutated, truncations
from tests.generator import layouts
from tests.generator.packages import has_records, imported
from tests.wireshark.traffic import Connection, message, write_pcap
from tests.wireshark.tshark import NEEDS_TSHARK, dissect, write_dissectors

PROTOCOLS = 5
MESSAGES = 4
SPOILT = 30
LONGEST = 8000
"""Octets of a message: one segment holds it, so that each message has a packet."""

ONCE = settings(
    max_examples=1,
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


def spoilt(made: list[list[bytes]], chance: Random) -> list[list[bytes]]:
    """Return messages, and each of them cut and changed in many ways."""
    rows = [frames for frames in made if sum(map(len, frames)) < LONGEST]
    for frames in tuple(rows):
        cut = [list(frames) for frames in truncations(tuple(frames))]
        rows += chance.sample(cut, min(len(cut), SPOILT))
        rows += [mutated(tuple(frames), chance) for _ in range(SPOILT)]
    return [frames for frames in rows if frames]


@NEEDS_TSHARK
@pytest.mark.slow
@ONCE
@given(st.lists(layouts.protocols, min_size=PROTOCOLS, max_size=PROTOCOLS), st.data())
def test_a_dissector_says_what_the_codec_says(drawn: list[ir.Protocol], data: st.DataObject) -> None:
    assume(has_records(drawn))
    wanted: list[tuple[str, list[bytes], DecodeError | None]] = []
    connections, options = [], []
    named = [
        msgspec.structs.replace(protocol, name=f"demo{number}", title=f"Demo {number}")
        for number, protocol in enumerate(drawn)
    ]
    with tempfile.TemporaryDirectory() as folder:
        with imported(Path(folder, "packages"), named, "strategies") as modules:
            for number, module in enumerate(modules):
                made = [data.draw(module.strategies.messages()).encode() for _ in range(MESSAGES)]
                rows = spoilt(made, Random(number))
                wanted += [(named[number].name, frames, fault(module, frames)) for frames in rows]
                connections.append(Connection(port=50000 + number, server=6000 + number))
                options += ["-o", f"demo{number}.ports:{6000 + number}"]
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
