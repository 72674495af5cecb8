"""Random layouts of every kind: the dissector says the same as the generated codec, in the same words."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from specwire.generated.errors import DecodeError, EncodeError
from specwire.generator import ir
from tests.generated.agreement import mutated, truncations
from tests.generator import layouts
from tests.generator.packages import has_records, imported
from tests.generator.test_values import Values
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
    with dissected(drawn, "strategies") as (modules, check):
        for module in modules:
            check([data.draw(module.strategies.messages()).encode() for _ in range(MESSAGES)])


@NEEDS_TSHARK
@pytest.mark.slow
@ONCE
@given(st.lists(st.one_of(layouts.valued(), layouts.more), min_size=PROTOCOLS, max_size=PROTOCOLS), st.data())
def test_values_of_every_kind(drawn: list[ir.Protocol], data: st.DataObject) -> None:
    assume(has_records(drawn))
    with dissected(drawn, "codec") as (modules, check):
        for module, protocol in zip(modules, drawn, strict=True):
            check(list(encodable(Values(data.draw, protocol, module))))


def encodable(values: Values) -> Iterator[list[bytes]]:
    """Yield messages as frames; a counter can be too small for what it counts."""
    for _ in range(MESSAGES):
        try:
            yield values.message().encode()
        except EncodeError:
            continue


@contextmanager
def dissected(
    drawn: list[ir.Protocol], *targets: str
) -> Iterator[tuple[list[Any], Callable[[list[list[bytes]]], None]]]:
    """Yield the packages of the protocols, and a function that takes frames of each package in turn.

    At the end, compare what the packages and the dissectors say of these frames and of damaged ones.
    """
    named = [
        msgspec.structs.replace(protocol, name=f"demo{number}", title=f"Demo {number}")
        for number, protocol in enumerate(drawn)
    ]
    wanted: list[tuple[str, list[bytes], DecodeError | None]] = []
    connections: list[Connection] = []
    options: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        with imported(Path(folder, "packages"), named, *targets) as modules:

            def check(made: list[list[bytes]]) -> None:
                number = len(connections)
                rows = spoilt(made, Random(number))
                wanted.extend((named[number].name, frames, fault(modules[number], frames)) for frames in rows)
                connections.append(Connection(port=50000 + number, server=6000 + number))
                options.extend(("-o", f"demo{number}.ports:{6000 + number}"))
                for frames in rows:
                    connections[-1].send(message(frames), sizes=(65000,))

            yield modules, check
        write_pcap(Path(folder, "all.pcap"), connections)
        shown = dissect(Path(folder, "all.pcap"), write_dissectors(Path(folder), named), *options)
    for (name, frames, error), packet in zip(wanted, shown, strict=True):
        assert packet.layers()[-1] == name, frames
        if error is None or error.message_name is not None:
            assert packet.faults[:1] == ([] if error is None else [str(error)]), (name, frames)
        else:
            assert packet.faults, (name, frames)
