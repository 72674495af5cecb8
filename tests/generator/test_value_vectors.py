"""Octets of every kind of value that a profile can declare, derived by hand or taken from published texts."""

from __future__ import annotations

import math
import zlib
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from specwire.generated.errors import DecodeError, EncodeError
from specwire.generator.pipeline import compile_protocol
from tests.generator.compiling import faults, write
from tests.generator.test_layouts import generated


def check(folder: Path, rule: str, declared: str, value: Any, octets: str) -> None:
    """The rule ``x`` between a constant and a trailing octet has `octets` (hexadecimal) for `value`."""
    grammar = f"A = %xA1 x end\n{rule}\nend = %xEE\n"
    profile = f'name = "demo"\nmessages = ["A"]\n[types.x]\n{declared}\n'
    protocol = compile_protocol(write(folder / "grammars", grammar, profile), shown="demo").protocol
    with generated(folder, protocol) as module:
        frames = [bytes.fromhex(f"a1{octets}ee")]
        assert module.A(x=value).encode() == frames
        found = module.decode(frames).x
        assert found == value and type(found) is type(value)
        for cut in range(1, len(frames[0])):
            with pytest.raises(DecodeError):
                module.decode([frames[0][:cut]])


@pytest.mark.parametrize(
    ("rule", "declared", "value", "octets"),
    [
        # Two's complement and byte order, by hand.
        ("x = 2OCTET", 'type = "integer"\norder = "little"', 258, "0201"),
        ("x = 3OCTET", 'type = "integer"\norder = "little"', 0x010203, "030201"),
        ("x = 2OCTET", "signed = true", -2, "fffe"),
        ("x = 1OCTET", "signed = true", -128, "80"),
        ("x = 5OCTET", 'signed = true\norder = "little"', -2, "feffffffff"),
        ("x = 8OCTET", "signed = true", -(2**63), "8000000000000000"),
        # IEEE 754: 1.0, -2.5 and the largest finite number of 4 octets.
        ("x = 4OCTET", 'type = "float"', 1.0, "3f800000"),
        ("x = 4OCTET", 'type = "float"\norder = "little"', -2.5, "000020c0"),
        ("x = 8OCTET", 'type = "float"', -2.5, "c004000000000000"),
        ("x = 8OCTET", 'type = "float"', math.inf, "7ff0000000000000"),
        ("x = OCTET", 'type = "boolean"', True, "01"),
        ("x = 4OCTET", 'type = "boolean"\norder = "little"', True, "01000000"),
        # The examples of the Protocol Buffers encoding guide and of Wikipedia's LEB128.
        ("x = 1*10OCTET", 'type = "varint"', 150, "9601"),
        ("x = 1*10OCTET", 'type = "varint"', 624485, "e58e26"),
        ("x = 1*10OCTET", 'type = "varint"\nsigned = true', -123456, "c0bb78"),
        ("x = 1*10OCTET", 'type = "varint"\nsigned = "zigzag"', -2, "03"),
        ("x = 1*10OCTET", 'type = "varint"\nsigned = "zigzag"', 0x7FFFFFFF, "feffffff0f"),
        # MQTT 3.1.1, section 2.2.3: 321 and the largest length; MIDI: variable-length quantities.
        ("x = 1*4OCTET", 'type = "varint"', 321, "c102"),
        ("x = 1*4OCTET", 'type = "varint"', 268435455, "ffffff7f"),
        ("x = 1*4OCTET", 'type = "varint"\norder = "big"', 0x00200000, "81808000"),
        ("x = 1*4OCTET", 'type = "varint"\norder = "big"', 0x001FFFFF, "ffff7f"),
        # ASCII digits.
        ("x = 1*DIGIT", 'type = "decimal"', 1024, b"1024".hex()),
        ("x = 4DIGIT", 'type = "decimal"', 7, b"0007".hex()),
        ('x = ["-"] 1*DIGIT', 'type = "decimal"', -15, b"-15".hex()),
        ("x = 1*HEXDIG", 'type = "hexadecimal"', 0xBEEF, b"beef".hex()),
        # RFC 9562, appendix A, and Microsoft's order of a GUID.
        ("x = 16OCTET", 'type = "uuid"', UUID("f81d4fae-7dec-11d0-a765-00a0c91e6bf6"), "f81d4fae7dec11d0a76500a0c91e6bf6"),
        (
            "x = 16OCTET",
            'type = "uuid"\norder = "little"',
            UUID("f81d4fae-7dec-11d0-a765-00a0c91e6bf6"),
            "ae4f1df8ec7dd011a76500a0c91e6bf6",
        ),
    ],
)  # fmt: skip
def test_a_value(tmp_path: Path, rule: str, declared: str, value: Any, octets: str) -> None:
    check(tmp_path, rule, declared, value, octets)


@pytest.mark.parametrize(
    ("rule", "declared", "octets"),
    [
        ("x = OCTET", 'type = "boolean"', "02"),
        ("x = 1*4OCTET", 'type = "varint"', "8080808001"),
        ("x = 1*10OCTET", 'type = "varint"', "ffffffffffffffffff02"),
        ("x = 1*DIGIT", 'type = "decimal"', b"18446744073709551616".hex()),
        ("x = 1*DIGIT", 'type = "decimal"', ""),
        ('x = ["-"] 1*DIGIT', 'type = "decimal"', b"-0".hex()),
    ],
)
def test_octets_that_are_no_value(tmp_path: Path, rule: str, declared: str, octets: str) -> None:
    grammar = f"A = %xA1 x end\n{rule}\nend = %xEE\n"
    profile = f'name = "demo"\nmessages = ["A"]\n[types.x]\n{declared}\n'
    protocol = compile_protocol(write(tmp_path / "grammars", grammar, profile), shown="demo").protocol
    with generated(tmp_path, protocol) as module, pytest.raises(DecodeError):
        module.decode([bytes.fromhex(f"a1{octets}ee")])


def test_varints_that_are_not_minimal_are_read(tmp_path: Path) -> None:
    grammar = "A = %xA1 x\nx = 1*10OCTET\n"
    profile = 'name = "demo"\n[types.x]\ntype = "varint"\n'
    protocol = compile_protocol(write(tmp_path / "grammars", grammar, profile), shown="demo").protocol
    with generated(tmp_path, protocol) as module:
        assert module.decode([bytes.fromhex("a18100")]).x == 1


def test_a_length_plus_a_constant_and_a_trailer(tmp_path: Path) -> None:
    """A length that counts itself and the octet before it, and a checksum of all before itself."""
    grammar = "A = %xA1 n body sum\nn = OCTET ; an integer\nbody = *OCTET\nsum = 4OCTET\n"
    profile = (
        'name = "demo"\n[types.n]\ncounts = ["body", "sum"]\nplus = 2\n[types.sum]\ntype = "integer"\n'
        'checksum = "crc32"\nover = ["id", "n", "body"]\norder = "little"\n'
    )
    protocol = compile_protocol(write(tmp_path / "grammars", grammar, profile), shown="demo").protocol
    covered = bytes.fromhex("a109616263")
    frame = covered + zlib.crc32(covered).to_bytes(4, "little")
    with generated(tmp_path, protocol) as module:
        assert module.A(body=b"abc").encode() == [frame]
        assert module.decode([frame]).body == b"abc"
        with pytest.raises(DecodeError) as caught:
            module.decode([frame[:-1] + bytes([frame[-1] ^ 1])])
        assert (caught.value.kind, caught.value.field, caught.value.offset) == ("checksum", "sum", 5)


def test_numbers_directly_before_what_they_count(tmp_path: Path) -> None:
    """Lengths and counts that are little-endian, a varint, or decimal digits."""
    grammar = (
        "A = %xA1 name words\nname = name-length *VCHAR\nname-length = 2OCTET\nwords = word-count *word\n"
        "word-count = 1*2OCTET\nword = 2OCTET ; an integer\n"
    )
    profile = (
        'name = "demo"\nmessages = ["A"]\n[types.name-length]\ntype = "integer"\norder = "little"\n'
        '[types.word-count]\ntype = "varint"\n'
    )
    protocol = compile_protocol(write(tmp_path / "grammars", grammar, profile), shown="demo").protocol
    with generated(tmp_path, protocol) as module:
        frames = [b"\xa1\x02\x00ab\x81\x01" + bytes(2) * 129]
        message = module.A(name="ab", words=(0,) * 129)
        assert message.encode() == frames
        assert module.decode(frames) == message


def test_comments_on_lengths_are_read(tmp_path: Path) -> None:
    """A length is little-endian where its comment says so; a signed one is refused."""
    grammar = "A = %xA1 name\nname = size *VCHAR\nsize = 2OCTET ; length of the name, little-endian\n"
    protocol = compile_protocol(write(tmp_path / "grammars", grammar), shown="demo").protocol
    with generated(tmp_path, protocol) as module:
        assert module.A(name="abc").encode() == [b"\xa1\x03\x00abc"]
        assert module.decode([b"\xa1\x03\x00abc"]).name == "abc"
    signed = grammar.replace("little-endian", "a signed integer")
    assert faults(tmp_path / "signed", signed) == ["E423 demo/grammar.abnf:3:15"]


def test_comments_are_read(tmp_path: Path) -> None:
    """A comment of a rule that is unambiguous says what its number is."""
    grammar = (
        "A = %xA1 p q r s\np = 4OCTET ; an integer in little-endian order\nq = 2OCTET ; a signed integer\n"
        "r = 8OCTET ; a double, IEEE 754\ns = 2OCTET ; a signed integer, least significant octet first\n"
    )
    protocol = compile_protocol(write(tmp_path / "grammars", grammar), shown="demo").protocol
    with generated(tmp_path, protocol) as module:
        frames = [bytes.fromhex("a101000000fffec004000000000000feff")]
        assert module.A(p=1, q=-2, r=-2.5, s=-2).encode() == frames
        assert module.decode(frames) == module.A(p=1, q=-2, r=-2.5, s=-2)


@pytest.mark.parametrize(
    ("comment", "declared", "value", "octets"),
    [
        ("little-endian", 'type = "float"', 1.0, "0000803f"),
        ("little-endian", "signed = true", -2, "feffffff"),
        ("a signed integer", 'order = "little"', -2, "feffffff"),
        ("little-endian", "members = { one = 1 }", 1, "01000000"),
        ("little-endian", 'order = "big"', 1, "00000001"),
    ],
)
def test_what_a_profile_does_not_state_the_comment_does(
    tmp_path: Path, comment: str, declared: str, value: Any, octets: str
) -> None:
    check(tmp_path, f"x = 4OCTET ; an integer, {comment}", declared, value, octets)


def test_constants_have_a_byte_order_and_a_sign(tmp_path: Path) -> None:
    grammar = "A = %xA1 x y\nx = 4OCTET\ny = 2OCTET\n"
    profile = (
        'name = "demo"\n[types.x]\nconstant = 2\norder = "little"\n[types.y]\nconstant = -2\nsigned = true\n'
    )
    protocol = compile_protocol(write(tmp_path / "grammars", grammar, profile), shown="demo").protocol
    with generated(tmp_path, protocol) as module:
        assert module.A().encode() == [bytes.fromhex("a102000000fffe")]


@pytest.mark.parametrize(
    ("rule", "declared", "found"),
    [
        ("x = 4OCTET ; an integer, little-endian", 'type = "integer"', "E423 demo/grammar.abnf:2:12"),
        ("x = %x00.01 / %x00.02", 'order = "little"', "E402 demo/profile.toml:2:2"),
        ("x = 4OCTET", 'type = "float"\nconstant = 2', "E402 demo/profile.toml:2:2"),
    ],
)
def test_a_declaration_without_effect_is_refused(
    tmp_path: Path, rule: str, declared: str, found: str
) -> None:
    assert faults(tmp_path, f"A = %xA1 x\n{rule}\n", f'name = "demo"\n[types.x]\n{declared}\n') == [found]


def package(folder: Path, grammar: str, profile: str = "") -> Any:
    """Return the context of the package of a small protocol."""
    protocol = compile_protocol(
        write(folder / "grammars", grammar, f'name = "demo"\n{profile}'), shown="demo"
    ).protocol
    return generated(folder, protocol)


def test_a_value_does_not_cross_the_end_of_what_a_number_counts(tmp_path: Path) -> None:
    """n counts x and body, two octets, but x alone has four."""
    grammar = "A = %xA1 n x body tail\nn = OCTET ; an integer\nx = 4OCTET ; an integer\nbody = *OCTET\ntail = *OCTET\n"
    with package(tmp_path, grammar, '[types.n]\ncounts = ["x", "body"]\n') as module:
        assert module.decode([bytes.fromhex("a10411223344")]).x == 0x11223344
        for length in ("02", "03"):
            with pytest.raises(DecodeError):
                module.decode([bytes.fromhex(f"a1{length}11223344")])


def test_flags_before_the_frame_that_they_announce(tmp_path: Path) -> None:
    grammar = (
        "A = head [body]\nhead = %xA1 flags ; ZeroMQ frame\nflags = OCTET\nflag-body = %x01\n"
        "body = *OCTET ; ZeroMQ frame\n"
    )
    with package(tmp_path, grammar, 'messages = ["A"]\n') as module:
        assert module.A(flags=0, body=b"x").encode() == [b"\xa1\x01", b"x"]
        assert module.A(flags=0, body=None).encode() == [b"\xa1\x00"]
        assert module.decode([b"\xa1\x01", b"x"]).body == b"x"


@pytest.mark.parametrize(
    ("grammar", "profile", "code"),
    [
        # The end of each record would depend on the end of the frame.
        (
            "A = %xA1 *r\nr = k body crc\nk = OCTET ; an integer\nbody = *OCTET\ncrc = 2OCTET ; an integer\n",
            "",
            "E409",
        ),
        # A digit of the next record, or of the name, would belong to the number.
        (
            "A = %xA1 *r\nr = k n\nk = OCTET ; an integer\nn = 1*DIGIT\n",
            '[types.n]\ntype = "decimal"\n',
            "E409",
        ),
        (
            "A = %xA1 n name\nn = 1*2DIGIT\nname = *VCHAR\n",
            '[types.n]\ntype = "decimal"\ncounts = "name"\n',
            "E430",
        ),
        ("A = %xA1 x [n]\nx = OCTET ; an integer\nn = 2OCTET\n", '[types.n]\nchecksum = "sum8"\n', "E431"),
        ("A = %xA1 *OCTET\n", "[types.A]\nmultiple = 1\n", "E510"),
    ],
)
def test_what_cannot_be_told_apart_is_refused(tmp_path: Path, grammar: str, profile: str, code: str) -> None:
    found = faults(tmp_path, grammar, f'name = "demo"\nmessages = ["A"]\n{profile}')
    assert code in {fault.split()[0] for fault in found}


@pytest.mark.parametrize(
    "key", ["plus = 4", 'counting = "octets"', 'over = "id"', "multiple = 4", "closed = true"]
)
def test_a_key_without_its_partner_is_refused(tmp_path: Path, key: str) -> None:
    found = faults(
        tmp_path, "A = %xA1 x\nx = 4OCTET\n", f'name = "demo"\n[types.x]\ntype = "integer"\n{key}\n'
    )
    assert found == ["E510 demo/profile.toml:4:1"]


def test_a_number_that_is_too_small_cannot_be_added(tmp_path: Path) -> None:
    grammar = "A = %xA1 n *OCTET\nn = OCTET\n"
    for table in (
        'counts = "*"\nplus = -3000000000',
        'bits.n = { width = 8, counts = "*", plus = -3000000000 }',
    ):
        found = faults(tmp_path, grammar, f'name = "demo"\n[types.n]\n{table}\n')
        assert [fault.split()[0] for fault in found] == ["E510"]


def test_bits_count_one_less(tmp_path: Path) -> None:
    """Three octets are counted as 2, in the lower half of the octet."""
    grammar = "A = %xA1 head data\nhead = OCTET\ndata = *OCTET\n"
    profile = 'name = "demo"\n[types.head.bits]\nhigh = 4\nn = { width = 4, counts = "data", plus = -1 }\n'
    protocol = compile_protocol(
        write(tmp_path, grammar, profile + '[types.data]\ntype = "octets"\n'), shown="demo"
    ).protocol
    with generated(tmp_path, protocol) as module:
        message = module.A(high=3, data=b"abc")
        assert message.encode() == [b"\xa1\x32abc"]
        assert module.decode([b"\xa1\x32abc"]) == message
        for data in (b"", bytes(17)):
            with pytest.raises(EncodeError):
                module.A(high=3, data=data).encode()


COUNTING = {
    "in a message": "A = %xA1 size *OCTET\n",
    "in a rule": "A = %xA1 data\ndata = size *OCTET\n",
    "of a rule": "A = %xA1 size data\ndata = *OCTET\n",
}
"""A number directly before a value that it could count."""


@pytest.mark.parametrize("grammar", COUNTING.values(), ids=COUNTING)
@pytest.mark.parametrize(
    ("declared", "values", "octets"),
    [
        ("constant = 5", {}, "a105 6162"),
        ("signed = true", {"size": -1}, "a1ff 6162"),
        ('type = "boolean"', {"size": True}, "a101 6162"),
        ("members = { one = 1, two = 2 }", {"size": 1}, "a101 6162"),
        ('checksum = "sum8"\nover = "id"', {}, "a1a1 6162"),
        ('counts = "*"\nplus = 1', {}, "a103 6162"),
    ],
)
def test_a_number_before_a_value_is_what_the_profile_says(
    tmp_path: Path, grammar: str, declared: str, values: dict[str, Any], octets: str
) -> None:
    profile = f'messages = ["A"]\n[types.size]\n{declared}\n'
    with package(tmp_path, grammar + "size = OCTET\n", profile) as module:
        name = next(name for name in module.A.__match_args__ if name in ("data", "value"))
        message = module.A(**values, **{name: b"ab"})
        assert message.encode() == [bytes.fromhex(octets)]
        assert module.decode(message.encode()) == message


@pytest.mark.parametrize(
    "key",
    [
        "constant = 5",
        "signed = true",
        'type = "float"',
        "members = { a = 1 }",
        'checksum = "sum8"',
        'counts = "*"',
    ],
)
def test_a_size_is_nothing_else(tmp_path: Path, key: str) -> None:
    grammar = "A = %xA1 size *OCTET\nsize = 4OCTET\n"
    found = faults(tmp_path, grammar, f'name = "demo"\n[types.size]\nscope = "next"\n{key}\n')
    assert "E510 demo/profile.toml:4:1" in found
