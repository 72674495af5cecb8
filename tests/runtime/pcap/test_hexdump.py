"""Octets as text: what tools print is read back, and what is no dump is told with its line."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specwire.runtime.pcap.errors import PcapError
from specwire.runtime.pcap.hexdump import parse_dumps

OCTETS = [b"a", bytes(range(40)), b"deadbeefcafe00112233445566778899" * 2, b"\0" * 100, b"|" * 33, b"x" * 300]
"""Among them text that looks like hexadecimal, repetitions, and the bars that hexdump sets round text."""


@pytest.mark.parametrize("octets", OCTETS)
@pytest.mark.parametrize(
    "tool",
    ["xxd", "xxd -a", "xxd -g 1 -c 24", "hexdump -C", "hexdump -Cv", "od -A x -t x1", "od -A x -t x1z"],
)
def test_what_tools_print(tool: str, octets: bytes) -> None:
    command = tool.split()
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not on this machine")
    text = subprocess.run(command, input=octets, capture_output=True, check=True).stdout.decode("ascii")
    assert parse_dumps(text, "dump") == [[octets]]


TSHARK = """\
Frame (20 bytes):
0000  61 62 63 64 65 66 30 31 32 33 34 35 36 37 38 39   abcdef0123456789
0010  61 61 62 62                                       aabb
Reassembled TCP (2 bytes):
0000  aa a3                                             ..

0000  04                                                .
"""

TCPDUMP = """\
12:00:00.000001 IP 127.0.0.1.40000 > 127.0.0.1.5670: Flags [P.], length 4
\t0x0000:  4500 0038 1234 4000 4006 aaaa 7f00 0001  E..8.4@.@.......
\t0x0010:  7f00                                     ..
"""


def test_tshark_and_tcpdump() -> None:
    """Headings part dumps of one packet, empty lines part packets; text that looks like octets is none."""
    assert parse_dumps(TSHARK, "x") == [[b"abcdef0123456789aabb", b"\xaa\xa3"], [b"\x04"]]
    assert parse_dumps(TCPDUMP, "x") == [[bytes.fromhex("4500003812344000 4006aaaa7f000001 7f00")]]


def test_plain_hexadecimal() -> None:
    """A line is a frame; an empty line ends the message."""
    text = "# a comment\n''\n6170 70\n0xAA, 0xBB\n\\x01\\x02\n\n00:11:22\n"
    assert parse_dumps(text, "x") == [[b"", b"app", b"\xaa\xbb", b"\x01\x02"], [b"\x00\x11\x22"]]
    assert parse_dumps("aaa307 0000010000000000", "x") == [[bytes.fromhex("aaa3070000010000000000")]]
    assert parse_dumps("00000000", "x") == [[bytes(4)]]
    assert parse_dumps("", "x") == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("aa\nhello", "d:2: neither hexadecimal nor a line of a hex dump: 'hello'"),
        ("abc", "d:1: neither hexadecimal"),
        ("0000  61 62\n0010  63\n", "d:1: expected 16 octets in hexadecimal behind the offset"),
        ("0000  61 62\n*\nfffffff0  63\n", "d:3: the dump would have more than 67108864 octets"),
        ("0010  61\n*\n", "d:2: neither hexadecimal"),
        ("0000  61 62\n0002  63\n0001  63\n", "d:3: the offset does not follow from the line before"),
        ("0000  61 62\n0002  63 64\n*\n0007  63\n", "d:4: the offset does not follow"),
    ],
)
def test_what_is_no_dump_says_where(text: str, reason: str) -> None:
    with pytest.raises(PcapError, match=re.escape(reason)):
        parse_dumps(text, "d")


@given(st.text(alphabet="0123456789abcdefx*|:. \n\t#", max_size=120))
def test_any_text_gives_octets_or_a_reason(text: str) -> None:
    try:
        assert all(isinstance(frame, bytes) for frames in parse_dumps(text, "d") for frame in frames)
    except PcapError as error:
        assert str(error).startswith("d:")
