"""Bits, options, texts and lists up to what follows, and recursion, as grammars and profiles write them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from specwire.generated.errors import DecodeError, EncodeError
from specwire.generator import ir
from specwire.generator.diagnostics import SpecError
from specwire.generator.emit.java import EMITTER as JAVA
from specwire.generator.pipeline import compile_protocol
from tests.generated.java_rows import compile_decoders, rows_of
from tests.generator.compiling import faults, write
from tests.generator.test_layouts import generated
from tests.generator.test_layouts_columns_encode import check_alone

PROFILE = 'name = "demo"\nmessages = ["A"]\ncase = "exact"\n'


def check(folder: Path, grammar: str, profile: str, *cases: tuple[dict[str, Any], bytes]) -> None:
    """The message ``A`` with these fields has these octets."""
    protocol = compile_protocol(write(folder / "grammars", grammar, PROFILE + profile), shown="demo").protocol
    with generated(folder, protocol) as module:
        for fields, octets in cases:
            message = module.A(**fields)
            assert message.encode() == [octets]
            assert module.decode([octets]) == message


def test_bits_of_an_integer_of_either_order(tmp_path: Path) -> None:
    grammar = "A = %xA1 x y\nx = 2OCTET\ny = 2OCTET\n"
    bits = "a = 4\nb = 1\nc = 11\n"
    profile = (
        f'[types.x.bits]\n{bits}[types.y]\norder = "little"\n[types.y.bits]\n{bits.replace(" =", "2 =")}'
    )
    # 0101 1 00000000011 is 5803.
    fields = {"a": 5, "b": True, "c": 3, "a2": 5, "b2": True, "c2": 3}
    check(tmp_path, grammar, profile, (fields, b"\xa1\x58\x03\x03\x58"))


def test_bits_have_members_constants_and_defaults(tmp_path: Path) -> None:
    grammar = "A = %xA1 x\nx = OCTET\n"
    profile = """\
[types.x.bits]
version = { width = 2, constant = 2 }
kind = { width = 3, members = { get = 1, put = 4 }, closed = true, default = "put" }
spare = { width = 1, spare = true }
one = { width = 1, type = "integer" }
last = 1
"""
    check(tmp_path, grammar, profile, ({"one": 1, "last": False}, b"\xa1\xa2"))
    protocol = compile_protocol(write(tmp_path / "again", grammar, PROFILE + profile), shown="demo").protocol
    with generated(tmp_path, protocol) as module:
        assert module.decode([b"\xa1\xa6"]).kind == module.Kind.PUT
        for wrong in (b"\xa1\x62", b"\xa1\xaa"):
            with pytest.raises(DecodeError):
                module.decode([wrong])
        with pytest.raises(EncodeError) as caught:
            module.A(one=2, last=False).encode()
        assert (caught.value.field, caught.value.kind) == ("one", "range")


def test_bits_in_the_elements_of_a_list(tmp_path: Path) -> None:
    grammar = "A = %xA1 n *x\nn = OCTET\nx = OCTET\n"
    profile = '[types.n]\ntype = "integer"\n[types.x.bits]\nhigh = 4\nlow = 4\n'
    protocol = compile_protocol(
        write(tmp_path / "grammars", grammar, PROFILE + profile), shown="demo"
    ).protocol
    with generated(tmp_path, protocol) as module:
        message = module.A(x=(module.X(high=1, low=2), module.X(high=15, low=0)))
        assert message.encode() == [b"\xa1\x02\x12\xf0"]
        assert module.decode(message.encode()) == message


def test_an_option_before_its_constant(tmp_path: Path) -> None:
    """The prefix of IRC, and a flag word of memcached's text protocol."""
    grammar = 'A = [":" prefix SP] word [SP "noreply"] CRLF\nprefix = 1*VCHAR\nword = 1*ALPHA\n'
    check(
        tmp_path, grammar, "",
        ({"prefix": "me!u@h", "word": "JOIN", "noreply": True}, b":me!u@h JOIN noreply\r\n"),
        ({"prefix": None, "word": "JOIN", "noreply": False}, b"JOIN\r\n"),
    )  # fmt: skip


def test_an_option_that_a_number_announces(tmp_path: Path) -> None:
    """MQTT's connect flags: a name if bit 7 is set, a password if bit 6 is set."""
    grammar = "A = %x10 flags [name] [password] end\nflags = OCTET\nname = length *VCHAR\npassword = length *OCTET\n"
    grammar += "length = 2OCTET\nend = OCTET\n"
    bits = "[types.flags.bits]\nhas-name = 1\nhas-password = 1\nrest = 6\n"
    bits += '[types.name]\npresence = "has-name"\n[types.password]\npresence = "has-password"\n'
    whole = '[types.flags]\ntype = "integer"\n[types.name]\npresence = { field = "flags", mask = 0x80 }\n'
    whole += '[types.password]\npresence = { field = "flags", values = [0xC0, 0x40] }\n'
    end = '[types.end]\ntype = "integer"\n'
    check(
        tmp_path / "bits", grammar, bits + end,
        ({"rest": 1, "name": "n", "password": b"", "end": 9}, b"\x10\xc1\x00\x01n\x00\x00\x09"),
        ({"rest": 0, "name": None, "password": b"p", "end": 9}, b"\x10\x40\x00\x01p\x09"),
        ({"rest": 0, "name": "", "password": None, "end": 9}, b"\x10\x80\x00\x00\x09"),
        ({"rest": 63, "name": None, "password": None, "end": 9}, b"\x10\x3f\x09"),
    )  # fmt: skip
    check(
        tmp_path / "whole", grammar, whole + end,
        ({"flags": 0xC0, "name": "n", "password": b"", "end": 9}, b"\x10\xc0\x00\x01n\x00\x00\x09"),
        ({"flags": 0x3F, "name": None, "password": None, "end": 9}, b"\x10\x3f\x09"),
    )  # fmt: skip
    protocol = compile_protocol(
        write(tmp_path / "again", grammar, PROFILE + whole + end), shown="demo"
    ).protocol
    with generated(tmp_path, protocol) as module:
        for fields in ({"flags": 0x80, "name": None}, {"flags": 0, "name": "n"}):
            with pytest.raises(EncodeError) as caught:
                module.A(**fields, password=None, end=9).encode()
            assert (caught.value.field, caught.value.kind) == ("name", "range")


def test_an_option_before_values_of_fixed_size(tmp_path: Path) -> None:
    grammar = "A = %xA1 [x] crc\nx = 2OCTET\ncrc = OCTET\n"
    profile = '[types.x]\ntype = "integer"\n[types.crc]\ntype = "integer"\n'
    check(tmp_path, grammar, profile, ({"x": 258, "crc": 7}, b"\xa1\x01\x02\x07"), ({"crc": 7}, b"\xa1\x07"))


def test_values_of_one_option_go_together(tmp_path: Path) -> None:
    grammar = "A = flags [x y] z\nflags = OCTET\nx = OCTET\ny = OCTET\nz = *OCTET\n"
    profile = (
        '[types.x]\ntype = "integer"\npresence = { field = "flags", mask = 1 }\n[types.y]\ntype = "integer"\n'
    )
    profile += '[types.flags]\ntype = "integer"\n'
    check(
        tmp_path, grammar, profile,
        ({"flags": 1, "x": 2, "y": 3, "z": b"z"}, b"\x01\x02\x03z"), ({"flags": 2, "z": b"z"}, b"\x02z"),
    )  # fmt: skip
    protocol = compile_protocol(write(tmp_path / "again", grammar, PROFILE + profile), shown="demo").protocol
    with generated(tmp_path, protocol) as module, pytest.raises(EncodeError) as caught:
        module.A(flags=1, x=2, z=b"").encode()
    assert caught.value.field == "y"


def test_a_list_of_words_and_headers(tmp_path: Path) -> None:
    """A line with words, and headers up to an empty line, as in STOMP."""
    grammar = """\
A = "SEND" *(SP word) LF *(header-name ":" header-value LF) LF body %x00
word = 1*%x21-7E
header-name = 1*( %x20-39 / %x3B-7E )
header-value = *( %x20-7E )
body = *%x01-FF
"""
    check(
        tmp_path, grammar, "",
        (
            {"word": ("a", "b:c"), "header": (("to", "/q:1"), ("x y", "")), "body": "hi\n"},
            b"SEND a b:c\nto:/q:1\nx y:\n\nhi\n\x00",
        ),
        ({"word": (), "header": (), "body": ""}, b"SEND\n\n\x00"),
    )  # fmt: skip


def test_a_number_that_counts_nothing_is_constant(tmp_path: Path) -> None:
    """The remaining length of MQTT's PINGREQ, and of a message with a plain length."""
    grammar = (
        "A = %xC0 size\nB = %x30 size x\nC = %x40 length\nsize = 1*4OCTET\nlength = 2OCTET\nx = *OCTET\n"
    )
    profile = 'name = "demo"\nmessages = ["A", "B", "C"]\n[types.size]\ntype = "varint"\ncounts = "*"\n'
    profile += '[types.length]\ntype = "integer"\nscope = "rest"\n'
    folder = write(tmp_path / "grammars", grammar, profile)
    with generated(tmp_path, compile_protocol(folder, shown="demo").protocol) as module:
        assert module.decode([b"\xc0\x00"]) == module.A()
        assert module.A().encode() == [b"\xc0\x00"]
        assert module.B(x=b"ab").encode() == [b"\x30\x02ab"]
        assert module.C().encode() == [b"\x40\x00\x00"]
        for wrong in (b"\xc0\x02", b"\xc0\x01x", b"\x40\x00\x02"):
            with pytest.raises(DecodeError):
                module.decode([wrong])


def test_letters_of_either_case(tmp_path: Path) -> None:
    grammar = 'A = "GET" SP x\nB = %s"put" SP x\nx = *VCHAR\n'
    folder = write(tmp_path / "grammars", grammar, 'name = "demo"\nmessages = ["A", "B"]\n')
    with generated(tmp_path, compile_protocol(folder, shown="demo").protocol) as module:
        for octets in (b"GET x", b"get x", b"gEt x"):
            assert module.decode([octets]) == module.A(x="x")
        assert module.A(x="x").encode() == [b"GET x"]
        assert module.decode([b"put x"]) == module.B(x="x")
        with pytest.raises(DecodeError):
            module.decode([b"PUT x"])


def test_records_that_contain_themselves(tmp_path: Path) -> None:
    """A tree: each node has a number and its children."""
    grammar = (
        "A = %xA1 node\nnode = value count *node\nvalue = OCTET ; an integer\ncount = OCTET ; an integer\n"
    )
    folder = write(
        tmp_path / "grammars", grammar, PROFILE + 'max_depth = 3\n[types.count]\ncounts = "node"\n'
    )
    protocol = compile_protocol(folder, shown="demo").protocol
    assert protocol.max_depth == 3
    with generated(tmp_path, protocol) as module:
        leaf = module.Node(value=2, node=())
        tree = module.A(node=module.Node(value=1, node=(leaf, module.Node(value=3, node=(leaf,)))))
        assert tree.encode() == [bytes.fromhex("a1 0102 0200 0301 0200")]
        assert module.decode(tree.encode()) == tree
        deep = module.Node(value=0, node=(module.Node(value=1, node=(module.Node(value=3, node=(leaf,)),)),))
        with pytest.raises(EncodeError) as caught:
            module.A(node=deep).encode()
        assert caught.value.kind == "limit"
        with pytest.raises(DecodeError) as refused:
            module.decode([bytes.fromhex("a1 0001 0101 0301 0200")])
        assert refused.value.kind == "limit"


def test_a_checksum_over_a_rule_with_bits(tmp_path: Path) -> None:
    grammar = "A = head n sum data\nhead = OCTET\nn = OCTET\nsum = OCTET\ndata = *OCTET\n"
    profile = '[types.head.bits]\nx = 4\ny = 4\n[types.n]\ntype = "integer"\n'
    profile += '[types.sum]\ntype = "integer"\nchecksum = "sum8"\nover = ["head", "n"]\n'
    check(tmp_path, grammar, profile, ({"x": 1, "y": 2, "n": 3, "data": b"z"}, b"\x12\x03\x15z"))


def test_a_condition_in_a_record(tmp_path: Path) -> None:
    grammar = "A = %xA1 *p\np = co-de [x]\nco-de = OCTET ; an integer\nx = 1OCTET\n"
    profile = '[types.x]\ntype = "octets"\npresence = { field = "co-de", values = [1] }\n'
    protocol = compile_protocol(
        write(tmp_path / "grammars", grammar, PROFILE + profile), shown="demo"
    ).protocol
    with generated(tmp_path, protocol) as module:
        message = module.A(p=(module.P(co_de=1, x=b"z"), module.P(co_de=2, x=None)))
        assert message.encode() == [b"\xa1\x01z\x02"]
        assert module.decode(message.encode()) == message


def test_a_bit_that_decides_between_two_values(tmp_path: Path) -> None:
    """BGP's extended length: one octet if the bit is 0, two if it is 1. The bit is no consequence of one of them."""
    grammar = "A = flags [x] [y]\nflags = OCTET\nx = 1OCTET\ny = 2OCTET\n"
    profile = '[types.flags.bits]\nwide = 1\nrest = 7\n[types.y]\ntype = "integer"\npresence = "wide"\n'
    profile += '[types.x]\ntype = "integer"\npresence = { field = "wide", values = [0] }\n'
    check(
        tmp_path, grammar, profile,
        ({"wide": False, "rest": 0, "x": 7}, b"\x00\x07"), ({"wide": True, "rest": 1, "y": 7}, b"\x81\x00\x07"),
    )  # fmt: skip
    protocol = compile_protocol(write(tmp_path / "again", grammar, PROFILE + profile), shown="demo").protocol
    with generated(tmp_path, protocol) as module:
        for fields in ({"wide": False}, {"wide": False, "x": 1, "y": 2}, {"wide": True, "x": 1}):
            with pytest.raises(EncodeError):
                module.A(rest=0, **fields).encode()


def test_a_list_of_declared_octets(tmp_path: Path) -> None:
    grammar = "A = %xA1 n *kind\nn = OCTET ; an integer\nkind = OCTET\n"
    profile = '[types.kind]\ntype = "integer"\nmembers = { a = 1, b = 2 }\nclosed = true\n'
    check(tmp_path, grammar, profile, ({"kind": (1, 2)}, b"\xa1\x02\x01\x02"), ({"kind": ()}, b"\xa1\x00"))
    protocol = compile_protocol(write(tmp_path / "again", grammar, PROFILE + profile), shown="demo").protocol
    with generated(tmp_path, protocol) as module, pytest.raises(DecodeError) as caught:
        module.decode([b"\xa1\x02\x01\x09"])
    assert caught.value.field == "kind[1]"


def test_messages_with_a_tag_behind_a_length(tmp_path: Path) -> None:
    """BGP: a marker, the length of everything, the type."""
    grammar = "A = %xFF length %x01 x\nB = %xFF length %x02 x\nlength = 2OCTET\nx = *OCTET\n"
    profile = (
        'name = "demo"\nmessages = ["A", "B"]\n[types.length]\ntype = "integer"\ncounts = "*"\nplus = 3\n'
    )
    folder = write(tmp_path / "grammars", grammar, profile)
    with generated(tmp_path, compile_protocol(folder, shown="demo").protocol) as module:
        assert module.B(x=b"ab").encode() == [b"\xff\x00\x06\x02ab"]
        assert module.decode([b"\xff\x00\x05\x01a"]) == module.A(x=b"a")


@pytest.mark.parametrize(
    ("grammar", "profile", "code"),
    [
        # Bits that do not cover their rule, or do not fit it.
        ("A = %xA1 x\nx = 2OCTET\n", "[types.x.bits]\na = 15\n", "E402"),
        ("A = %xA1 x\nx = *OCTET\n", "[types.x.bits]\na = 8\n", "E402"),
        ("A = %xA1 x\nx = OCTET\n", "[types.x.bits]\na = { width = 8, constant = 256 }\n", "E402"),
        ("A = %xA1 x\nx = OCTET\n", '[types.x.bits]\na = { width = 8, type = "boolean" }\n', "E402"),
        ("A = %xA1 x\nx = OCTET\n", '[types.x]\ntype = "integer"\n[types.x.bits]\na = 8\n', "E510"),
        # Nothing says whether it is present; or what follows may begin like it.
        ("A = %xA1 [x] y\nx = 2OCTET\ny = *OCTET\n", "", "E405"),
        ('A = ["a" x] y\nx = OCTET\ny = 1*ALPHA\n', "", "E405"),
        ('A = ["ab" x] "abc" y\nx = OCTET\ny = *OCTET\n', "", "E405"),
        (
            "A = n [x] y\nn = OCTET\nx = OCTET\ny = *OCTET\n",
            '[types.x]\npresence = { field = "z" }\n',
            "E405",
        ),
        (
            "A = n [x] y\nn = OCTET\nx = OCTET\ny = *OCTET\n",
            '[types.x]\npresence = { field = "n" }\n',
            "E405",
        ),
        ("A = n [x [y]] z\nn = OCTET\nx = OCTET\ny = OCTET\nz = *OCTET\n", "", "E405"),
        (
            "A = h s\nh = OCTET\ns = OCTET\n",
            '[types.h.bits]\nx = 4\ny = 4\n[types.s]\ntype = "integer"\nchecksum = "sum8"\nover = "y"\n',
            "E431",
        ),
        ('A = %xA1 [":" x SP] ["@" y SP] ":" z\nx = 1*ALPHA\ny = 1*ALPHA\nz = *VCHAR\n', "", "E405"),
        (
            "A = n [x] [y] z\nn = OCTET ; an integer\nx = 2OCTET\ny = 2OCTET\nz = 2OCTET\n",
            '[types.y]\npresence = { field = "n", values = [1] }\n',
            "E405",
        ),
        (
            "A = %x01 [%x00 x] y\nx = OCTET\ny = 8ALPHA\n",
            '[types.y]\ntype = "text"\npadding = 0\n',
            "E405",
        ),
        ("A = %x01 n\nn = OCTET ; an integer\n", '[types.n]\ncounts = "*"\nplus = 300\n', "E431"),
        # The end of a text or a list is not certain.
        ("A = %xA1 x y\nx = 1*ALPHA\ny = 1*VCHAR\n", "", "E409"),
        ("A = %xA1 *(SP x) SP y\nx = 1*ALPHA\ny = *OCTET\n", "", "E409"),
        # It never ends, has no end, or is too deep for anybody.
        ("A = %xA1 x\nx = %x01 x\n", "", "E412"),
        ("A = %xA1 x\nx = %x01 *x\n", "", "E412"),
        ("A = %xA1 x\nx = OCTET\n", "max_depth = 129\n", "E510"),
    ],
)
def test_what_cannot_be_expressed_is_refused(tmp_path: Path, grammar: str, profile: str, code: str) -> None:
    found = [fault.split()[0] for fault in faults(tmp_path, grammar, PROFILE + profile)]
    assert code in found


def test_the_condition_of_an_option_is_in_the_ir(tmp_path: Path) -> None:
    grammar = 'A = [":" x] "b"\nx = 1*DIGIT\n'
    protocol = compile_protocol(write(tmp_path, grammar, PROFILE), shown="demo").protocol
    colon, x, end = protocol.messages[0].fields
    assert colon.option == x.option == ir.Option("octets", 1, octets="3a")
    assert (x.nullable, x.required, end.option) == (True, False, None)


@pytest.mark.parametrize(
    ("grammar", "profile", "reason"),
    [
        (
            'A = %xA1 k sum [ext]\nk = OCTET\nsum = OCTET\next = 3OCTET\n',
            ('[types.k]\ntype = "integer"\n[types.sum]\ntype = "integer"\nchecksum = "xor8"\nover = "k"\n'
            '[types.ext]\ntype = "octets"\npresence = { field = "sum", values = [2] }\n'),
            "'sum' is a checksum",
        ),
        (
            "A = %xA1 size [ext] data\nsize = OCTET\ndata = *OCTET\next = 3OCTET\n",
            '[types.size]\ncounts = "data"\n[types.ext]\npresence = { field = "size", values = [2] }\n',
            "'size' counts what follows it",
        ),
        (
            "A = %xA1 size [ext] data\nsize = OCTET\ndata = *OCTET\next = 3OCTET\n",
            '[types.size]\ncounts = "*"\n[types.ext]\npresence = { field = "size", values = [2] }\n',
            "'size' counts what follows it",
        ),
    ],
    ids=["a checksum", "a number that counts a later value", "a number that counts the option"],
)  # fmt: skip
def test_a_number_that_is_computed_later_decides_nothing(
    grammar: str, profile: str, reason: str, tmp_path: Path
) -> None:
    with pytest.raises(SpecError) as caught:
        compile_protocol(write(tmp_path, grammar, PROFILE + profile), shown="demo")
    (error,) = [found for found in caught.value.diagnostics if found.code.startswith("E")]
    assert (error.code, error.message) == ("E405", f"the option of 'ext' in 'A': {reason}")


def test_a_number_that_counts_earlier_values_decides(tmp_path: Path) -> None:
    grammar = "A = %xA1 size *x [ext]\nsize = OCTET\nx = 2OCTET\next = 3OCTET\n"
    profile = '[types.size]\ncounts = "x"\n[types.ext]\ntype = "octets"\npresence = { field = "size", values = [2] }\n'
    check(
        tmp_path, grammar, profile,
        ({"x": (1, 2), "ext": b"ext"}, b"\xa1\x02\0\1\0\2ext"), ({"x": (3,)}, b"\xa1\x01\0\3"),
    )  # fmt: skip
    protocol = compile_protocol(write(tmp_path / "again", grammar, PROFILE + profile), shown="demo").protocol
    with generated(tmp_path, protocol) as module, pytest.raises(EncodeError) as caught:
        module.A(x=(3,), ext=b"ext").encode()
    assert (caught.value.field, caught.value.expected) == ("ext", "no value, because size is 1")


COVERED = "A = %xA1 x [y z] sum\nx = OCTET\ny = OCTET\nz = OCTET\nsum = OCTET\n"
COVERED_PROFILE = """\
[types]
x.type = "integer"
z.type = "integer"
y = { type = "integer", presence = { field = "x", values = [2] } }
sum = { type = "integer", checksum = "xor8", over = %s }
"""


def test_a_checksum_covers_a_whole_option(tmp_path: Path) -> None:
    check(
        tmp_path, COVERED, COVERED_PROFILE % ["y", "z"],
        ({"x": 2, "y": 8, "z": 5}, b"\xa1\x02\x08\x05\x0d"), ({"x": 1}, b"\xa1\x01\x00"),
    )  # fmt: skip


@pytest.mark.parametrize("over", [["y"], ["z"], ["x", "y"]])
def test_a_checksum_of_a_part_of_an_option_is_refused(over: list[str], tmp_path: Path) -> None:
    found = faults(tmp_path, COVERED, PROFILE + COVERED_PROFILE % over)
    assert found == ["E431 demo/profile.toml:8:27"]


def test_a_checksum_names_a_rule_as_often_as_the_run_has_it(tmp_path: Path) -> None:
    grammar = "A = %xA1 y x y x sum\nx = OCTET\ny = OCTET\nsum = OCTET\n"
    types = '[types]\nx.type = "integer"\ny.type = "integer"\n'
    types += 'sum = { type = "integer", checksum = "sum8", over = %s }\n'
    values = {"y": 1, "x": 2, "y_2": 4, "x_2": 8}
    for name, over, total in (("once", ["x"], 2), ("twice", ["x", "x"], 10)):
        check(tmp_path / name, grammar, types % over, (values, bytes([0xA1, 1, 2, 4, 8, total])))
    found = faults(tmp_path, grammar, PROFILE + types % ["x", "x", "x"])
    assert found == ["E431 demo/profile.toml:7:27"]


def test_short_items_do_not_form_the_end_of_their_list(tmp_path: Path) -> None:
    """A carriage return is no letter; with its number 10 and the next item, it would be the end of the list."""
    grammar = "A = %xA1 *item %x0D.0A.0B\nitem = letter number\nletter = ALPHA\nnumber = OCTET\n"
    protocol = compile_protocol(write(tmp_path / "grammars", grammar, PROFILE), shown="demo").protocol
    with generated(tmp_path, protocol) as module:
        message = module.A(item=(module.Item(letter="a", number=13), module.Item(letter="b", number=10)))
        assert message.encode() == [b"\xa1a\x0db\x0a\x0d\x0a\x0b"]
        assert module.decode(message.encode()) == message
        items = (module.Item(letter="\r", number=10), module.Item(letter="\v", number=1))
        with pytest.raises(EncodeError) as caught:
            module.A(item=items).encode()
        assert (caught.value.field, caught.value.kind) == ("item[0]", "text")
        with pytest.raises(DecodeError):
            module.decode([b"\xa1\x0d\x0a\x0b\x01\x0d\x0a\x0b"])


def test_items_with_an_option_are_records(tmp_path: Path) -> None:
    grammar = 'A = "S" *item CRLF\nitem = {item}\nflag = ALPHA\nword = 1*DIGIT\n'
    for number, (item, octets) in enumerate(
        [('["!" flag] word SP', b"S!x12 3 \r\n"), ('"," word ["!" flag]', b"S,12!x,3\r\n")]
    ):
        source = write(tmp_path / str(number), grammar.format(item=item), PROFILE)
        with generated(tmp_path, compile_protocol(source, shown="demo").protocol) as module:
            message = module.A(item=(module.Item(flag="x", word="12"), module.Item(word="3")))
            assert message.encode() == [octets]
            assert module.decode([octets]) == message
    # The octets of a word are also those of the next item.
    found = faults(tmp_path, grammar.format(item='["!" flag] word'), PROFILE)
    assert "E409" in {fault.split()[0] for fault in found}


def test_a_fault_of_named_bits_is_shown_where_they_are_declared(tmp_path: Path) -> None:
    grammar = "A = %xA1 head data\nhead = OCTET\ndata = *OCTET\n"
    table = '[types.head.bits]\nhigh = 4\nn = { width = 4, counts = "date" }\n'
    assert faults(tmp_path / "inline", grammar, PROFILE + table) == ["E431 demo/profile.toml:6:18"]
    table = '[types.head.bits]\nhigh = 4\n[types.head.bits.n]\nwidth = 4\ncounts = "date"\n'
    assert faults(tmp_path / "table", grammar, PROFILE + table) == ["E431 demo/profile.toml:8:1"]


def test_a_value_has_its_name_before_a_constant(tmp_path: Path) -> None:
    """Constants without a rule are named `id`, too."""
    grammar = 'A = %xA1 id "," id %x00\nid = OCTET\n'
    fields = {"id_": 7, "id_2": 8}
    check(tmp_path, grammar, '[types.id]\ntype = "integer"\n', (fields, b"\xa1\x07,\x08\x00"))


@pytest.mark.parametrize(("after", "code"), [('"x"', ["E430"]), ('"-"', [])])
def test_what_follows_pairs_is_no_part_of_the_last_value(after: str, code: list[str], tmp_path: Path) -> None:
    grammar = f"A = %xA1 n *pair {after}\nn = OCTET\n"
    grammar += 'pair = SP header-name ":" header-value\nheader-name = 1*ALPHA\nheader-value = 1*ALPHA\n'
    found = faults(tmp_path, grammar, PROFILE + '[types.n]\ncounts = "pair"\n')
    assert [fault.split()[0] for fault in found] == code


HEADERS = """\
query = id flags-of-query n
answer = id flags-of-answer n
id = 2OCTET
flags-of-query = OCTET
flags-of-answer = OCTET
n = OCTET
"""
HEADER_BITS = """\
name = "demo"
messages = ["query", "answer"]
[types.id]
type = "integer"
[types.n]
type = "integer"
[types.flags-of-query.bits]
qr = { width = 1, constant = 0 }
rest = 7
[types.flags-of-answer.bits]
qr = { width = 1, constant = 1 }
more = 7
"""


def test_one_constant_bit_after_a_number_identifies_a_message(tmp_path: Path) -> None:
    """DNS: QR, the first bit after the 16-bit ID, is 0 in a query and 1 in a response."""
    protocol = compile_protocol(write(tmp_path / "grammars", HEADERS, HEADER_BITS), shown="demo").protocol
    with generated(tmp_path, protocol) as module:
        for number in range(128):
            query, answer = module.Query(id_=9, rest=number, n=1), module.Answer(id_=9, more=number, n=1)
            assert query.encode() == [bytes((0, 9, number, 1))]
            assert answer.encode() == [bytes((0, 9, number | 128, 1))]
            assert [module.decode(message.encode()) for message in (query, answer)] == [query, answer]


def test_permitted_values_identify_a_message(tmp_path: Path) -> None:
    grammar = "A = kind x\nB = other x\nkind = OCTET\nother = %x03 / %x04\nx = OCTET ; an integer\n"
    profile = """\
name = "demo"
messages = ["A", "B"]
[types.kind]
members = { one = 1, two = 2 }
closed = true
"""
    protocol = compile_protocol(write(tmp_path / "grammars", grammar, profile), shown="demo").protocol
    with generated(tmp_path, protocol) as module:
        for kind in (1, 2):
            assert module.decode([bytes((kind, 7))]) == module.A(kind=kind, x=7)
        for other in (3, 4):
            assert module.decode([bytes((other, 7))]) == module.B(other=other, x=7)
        with pytest.raises(DecodeError) as caught:
            module.decode([b"\x05\x07"])
        assert (caught.value.kind, caught.value.expected) == ("tag", "0x01, 0x02, 0x03 or 0x04")


def test_a_value_that_one_message_announces(tmp_path: Path) -> None:
    """MQTT's packet identifier: in PUBLISH only if the QoS is not 0."""
    grammar = "A = %x01 qos [x] %x00\nB = %x02 x %x00\nqos = OCTET\nx = 2OCTET\n"
    profile = """\
name = "demo"
messages = ["A", "B"]
[types.qos]
type = "integer"
[types.x]
type = "integer"
[types."A.x"]
presence = { field = "qos", values = [1, 2] }
"""
    protocol = compile_protocol(write(tmp_path / "grammars", grammar, profile), shown="demo").protocol
    with generated(tmp_path, protocol) as module:
        for message, octets in (
            (module.A(qos=0, x=None), "010000"),
            (module.A(qos=2, x=3), "0102000300"),
            (module.B(x=3), "02000300"),
        ):
            assert message.encode() == [bytes.fromhex(octets)]
            assert module.decode([bytes.fromhex(octets)]) == message


SOCKS = """\
greeting = version nmethods *method
method-reply = version method
request = version command %x00 address port
reply = version status %x00 address port
version = %x05
nmethods = OCTET
method = OCTET
command = OCTET
status = OCTET
address = ip4 / domain
ip4 = %x01 ip4-octets
ip4-octets = 4OCTET
domain = %x03 length *OCTET
length = OCTET
port = 2OCTET
"""
SOCKS_PROFILE = """\
name = "demo"
messages = ["greeting", "method-reply", "request", "reply"]
[types.nmethods]
scope = "next"
[types.method]
type = "integer"
[types.command]
members = { connect = 1, bind = 2, udp-associate = 3 }
[types.status]
members = { succeeded = 0 }
[types.ip4-octets]
type = "octets"
[types.port]
type = "integer"
[roles.C]
name = "client"
socket = "STREAM"
[roles.S]
name = "server"
socket = "STREAM"
[message.greeting]
senders = ["C"]
[message.request]
senders = ["C"]
[message.method-reply]
senders = ["S"]
[message.reply]
senders = ["S"]
"""


def test_messages_of_one_role_of_which_one_has_more_constants(tmp_path: Path) -> None:
    """SOCKS5 (RFC 1928): a greeting is no request unless it has the octets of a whole one."""
    protocol = compile_protocol(write(tmp_path / "grammars", SOCKS, SOCKS_PROFILE), shown="demo").protocol
    with generated(tmp_path, protocol) as module:
        address = module.Ip4(ip4_octets=b"\x7f\0\0\1")
        for sender, message, octets in (
            ("C", module.Greeting(method=(0,)), "050100"),
            ("C", module.Greeting(method=(0, 1)), "05020001"),
            ("S", module.MethodReply(method=0), "0500"),
            (
                "C",
                module.Request(command=module.Command.CONNECT, address=address, port=80),
                "050100017f0000010050",
            ),
            (
                "S",
                module.Reply(status=module.Status.SUCCEEDED, address=address, port=80),
                "050000017f0000010050",
            ),
        ):
            assert message.encode() == [bytes.fromhex(octets)]
            assert module.decode([bytes.fromhex(octets)], sender=sender) == message
        with pytest.raises(EncodeError) as caught:
            module.Greeting(method=(0, 1, 7, 7, 7, 7, 7, 7)).encode()
        assert (caught.value.field, caught.value.kind) == ("method", "tag")


def test_an_option_before_a_number_with_few_values(tmp_path: Path) -> None:
    grammar = "A = %x01 [opt] x\nopt = %xFF body\nbody = length *OCTET\nlength = OCTET\nx = %x00 / %x01\n"
    check(
        tmp_path, grammar, "",
        ({"body": b"b", "x": 1}, b"\x01\xff\x01b\x01"),
        ({"body": None, "x": 0}, b"\x01\x00"),
    )  # fmt: skip


def test_a_line_end_with_or_without_cr(tmp_path: Path) -> None:
    grammar = "A = %x01 word [CR] LF\nword = 1*ALPHA\n"
    check(
        tmp_path, grammar, "",
        ({"word": "ab", "cr": True}, b"\x01ab\r\n"), ({"word": "ab", "cr": False}, b"\x01ab\n"),
    )  # fmt: skip


def test_an_error_of_an_option_shows_what_the_grammar_has(tmp_path: Path) -> None:
    grammar = 'A = %x01 [%xFF SP "m" body] x\nbody = length *OCTET\nlength = OCTET\nx = OCTET\n'
    with pytest.raises(SpecError) as caught:
        compile_protocol(write(tmp_path, grammar, PROFILE), shown="demo")
    assert "the option of" in str(caught.value) and "'id" not in str(caught.value)
    assert "%xFF, SP, \"m\", 'body'" in str(caught.value)


def test_numbers_that_are_less_than_what_they_count(tmp_path: Path) -> None:
    grammar = "A = %x01 n body m *item end\nn = OCTET\nbody = *OCTET\nm = OCTET\nitem = OCTET\nend = OCTET\n"
    profile = """\
[types.n]
type = "integer"
counts = "body"
plus = -1
[types.m]
type = "integer"
counts = "item"
plus = -2
[types.item]
type = "integer"
[types.end]
type = "integer"
"""
    check(
        tmp_path, grammar, profile,
        ({"body": b"AB", "item": (1, 2, 3), "end": 9}, b"\x01\x01AB\x01\x01\x02\x03\x09"),
        ({"body": b"x" * 256, "item": (1, 2), "end": 9}, b"\x01\xff" + b"x" * 256 + b"\0\x01\x02\x09"),
    )  # fmt: skip
    protocol = compile_protocol(write(tmp_path / "again", grammar, PROFILE + profile), shown="demo").protocol
    with generated(tmp_path, protocol) as module:
        for body, item, field in ((b"", (1, 2), "body"), (b"A", (1,), "item"), (b"x" * 257, (1, 2), "body")):
            message = module.A(body=body, item=item, end=0)
            with pytest.raises(EncodeError) as caught:
                message.encode()
            assert caught.value.field == field
            check_alone(module, message)


def test_two_lists_of_groups_have_two_records(tmp_path: Path) -> None:
    """The records of groups have the same name, so the second gets a number."""
    grammar = "A = %xA1 outer\nouter = size *( inner z )\ninner = size *( x y )\n"
    grammar += "x = OCTET\ny = OCTET\nz = OCTET\nsize = OCTET\n"
    table = '[types.size]\nscope = "rest"\n[types.x]\ntype = "integer"\n[types.y]\ntype = "integer"\n[types.z]\ntype = "integer"\n'
    protocol = compile_protocol(write(tmp_path / "grammars", grammar, PROFILE + table), shown="demo").protocol
    with generated(tmp_path, protocol) as module:
        inner = (module.Entry2(x=1, y=2), module.Entry2(x=3, y=4))
        message = module.A(value=(module.Entry(inner=module.Inner(value=inner), z=9),))
        octets = bytes.fromhex("a106040102030409")
        assert message.encode() == [octets]
        assert module.decode([octets]) == message


def test_the_error_of_unknown_octets_is_where_messages_differ(tmp_path: Path) -> None:
    """A number of any octets stands before the constants, as in Modbus."""
    grammar = "A = n %x01 x\nB = n %x01 x y\nC = n %x02 x\nn = 2OCTET\nx = OCTET\ny = OCTET\n"
    types = "".join(f'[types.{name}]\ntype = "integer"\n' for name in "nxy")
    source = write(tmp_path / "grammars", grammar, 'name = "demo"\nmessages = ["A", "B", "C"]\n' + types)
    protocol = compile_protocol(source, shown="demo").protocol
    cases = {
        "00010305": (2, "tag", "0x01 or 0x02", "0x03"),
        "0001": (0, "length", "4 octets or 5 octets", "2"),
        "000101050607": (0, "length", "4 octets or 5 octets", "6"),
    }
    with generated(tmp_path, protocol) as module:
        for octets, (offset, *wanted) in cases.items():
            with pytest.raises(DecodeError) as caught:
                module.decode([bytes.fromhex(octets)])
            error = caught.value
            assert [error.offset, error.kind, error.expected, error.found] == [offset, *wanted]
    java = tmp_path / "java" / "demo" / "Decode.java"
    java.parent.mkdir(parents=True)
    java.write_text(str(JAVA.emit(protocol)), encoding="utf-8")
    rows = rows_of(
        compile_decoders([java], tmp_path / "classes"),
        [("demo", None, [bytes.fromhex(one)]) for one in cases],
    )
    for row, (offset, kind, expected, found) in zip(rows, cases.values(), strict=True):
        assert (row["_error"]["offset"], row["_error"]["kind"]) == (offset, kind)
        assert f"expected {expected}, found {found}" in row["_error"]["text"]
