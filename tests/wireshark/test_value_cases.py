"""Messages with every kind of value in tshark: derived by hand, and frames that are no message."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from specwire.generator import ir
from tests.generator.layouts import field
from tests.generator.test_explainer import flagged
from tests.generator.value_cases import CASES, Case, constant, one_message
from tests.wireshark.traffic import Connection, message, write_pcap
from tests.wireshark.tshark import NEEDS_TSHARK, Shown, dissect, write_dissectors

BY_NAME = {case.name: case for case in CASES}


def shown(folder: Path, protocol: ir.Protocol, *messages: list[bytes] | tuple[bytes, ...]) -> list[Shown]:
    """Return what tshark shows of messages of a protocol named ``demo``."""
    named = msgspec.structs.replace(protocol, name="demo")
    connection = Connection(server=6000)
    for frames in messages:
        connection.send(message(list(frames)), sizes=(65000,))
    write_pcap(folder / "demo.pcap", [connection])
    packets = dissect(folder / "demo.pcap", write_dissectors(folder, [named]), "-o", "demo.ports:6000")
    return [packet for packet in packets if "demo" in packet.layers()]


@NEEDS_TSHARK
@pytest.mark.parametrize("name", BY_NAME)
def test_a_dissector_knows_the_cases(name: str, tmp_path: Path) -> None:
    case: Case = BY_NAME[name]
    fine = [frames for _, frames in case.good] + [frames for frames, _ in case.also]
    packets = shown(tmp_path, case.protocol, *fine, *(frames for frames, _ in case.refused))
    for packet in packets[: len(fine)]:
        assert packet.faults == []
    for packet, (frames, fault) in zip(packets[len(fine) :], case.refused, strict=True):
        assert f"expected {fault.expected}, found {fault.found}" in packet.faults[0], frames


@NEEDS_TSHARK
def test_bits_are_fields_with_masks(tmp_path: Path) -> None:
    (packet,) = shown(tmp_path, BY_NAME["header"].protocol, [bytes.fromhex("aa1234930378")])
    assert packet.values("demo.opcode") == ["2"]
    assert packet.values("demo.tc") == ["1"]
    assert packet.labels("demo.rcode") == [".... .... .... 0011 = rcode: 3"]


@NEEDS_TSHARK
def test_bits_of_a_wide_integer(tmp_path: Path) -> None:
    """Wireshark gets the values of bits in more than four octets from the dissector."""
    protocol = one_message(
        constant("mark", b"\xab"),
        field("high", ir.BitType(8, 63, 1, "little", boolean=True)),
        field("low", ir.BitType(8, 0, 63, "little")),
    )
    (packet,) = shown(tmp_path, protocol, [b"\xab" + (2**63 + 2**60 + 7).to_bytes(8, "little")])
    assert packet.faults == []
    assert packet.labels("demo.high") == ["high: True"]
    assert packet.values("demo.low") == [str(2**60 + 7)]


@NEEDS_TSHARK
def test_a_mask_of_a_wide_number(tmp_path: Path) -> None:
    """Lua's numbers are not exact up to 64 bits; masks are."""
    condition = ir.Option("number", 1, field="number", mask=2**63 + 1, values=(1,))
    protocol = one_message(
        constant("mark", b"\xab"),
        field("number", ir.IntegerType(8)),
        field("more", ir.IntegerType(1), option=condition),
    )
    rows = [(2**62 + 1, b"\x05"), (2**63 + 1, b""), (2**63, b"")]
    packets = shown(tmp_path, protocol, *([b"\xab" + n.to_bytes(8, "big") + more] for n, more in rows))
    assert [packet.faults for packet in packets] == [[], [], []]
    assert [packet.values("demo.more") for packet in packets] == [["5"], [], []]


@NEEDS_TSHARK
def test_flags_behind_a_text(tmp_path: Path) -> None:
    good = ([b"topic", b"\x8e\1\2ab\3\7"], [b"\x8e\1\1\1\2\7"])
    with_topic, without, bad = shown(tmp_path, flagged(), *good, [b"\x8e\1\1a\1\7"])
    assert (with_topic.faults, without.faults) == ([], [])
    assert (with_topic.values("demo.name"), without.values("demo.number")) == (["ab"], ["7"])
    assert "expected a frame with topic, found 1 frame" in bad.faults[0]


@NEEDS_TSHARK
def test_values_inside_each_other_need_no_stack(tmp_path: Path) -> None:
    """The tree shows the outer ones; all are checked."""
    protocol = msgspec.structs.replace(BY_NAME["reply"].protocol, max_depth=256)
    deep = ([b"*1\r\n" * 255 + b"*0\r\n"], [b"*1\r\n" * 10_000])
    good, bad = shown(tmp_path, protocol, *deep)
    assert good.faults == []
    assert bad.values("demo.malformed.limit")
