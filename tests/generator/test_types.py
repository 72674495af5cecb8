"""What is inferred from a grammar alone, rule by rule of how ZeroMQ specifications are written.

None of these protocols has a profile; each says in its name which shape it is about.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from specwire.generator.ir import (
    Always,
    Announced,
    ConstantType,
    Counted,
    Frame,
    IntegerType,
    JsonType,
    KeywordType,
    Length,
    ListType,
    OctetsType,
    PairsType,
    Rest,
    Selector,
    Stack,
    TextType,
    Type,
)
from tests.generator.compiling import compiled, faults, layout

REST = Length("rest")
WORD = "[\\x21-\\x7e]*"


def field(tmp_path: Path, rules: str) -> tuple[Type, list[str]]:
    """Return the type of field ``x`` of a message that ends with it, and the codes of the warnings."""
    found = compiled(tmp_path, f"list = A / B\nA = %xAA %x01 x\nB = %xAA %x02\n{rules}")
    return layout(found.protocol.messages[0])[0]["x"], [warning.code for warning in found.warnings]


@pytest.mark.parametrize(
    ("rules", "type"),
    [
        ("x = %xAA %xA1", ConstantType("aaa1")),
        ("x = %d1", ConstantType("01", number=1)),
        ('x = %s"READY"', ConstantType("5245414459", text="READY")),
        ("x = 31%x00", ConstantType("00" * 31)),
        ("x = number-3\nnumber-3 = 3OCTET", IntegerType(3)),
        ("x = number-8\nnumber-8 = 8OCTET", IntegerType(8)),
        ("x = 5OCTET ; in network order", IntegerType(5)),
        ("x = 3OCTET", OctetsType(Length("fixed", 3), 3)),
        ("x = 16OCTET", OctetsType(Length("fixed", 16), 16)),
        ("x = 2( 2OCTET ) ; a number", IntegerType(4)),
        ("x = size *VCHAR\nsize = OCTET", TextType(Length("prefix", 1), WORD)),
        ("x = size 1*VCHAR\nsize = OCTET", TextType(Length("prefix", 1), "[\\x21-\\x7e]+")),
        ("x = size *OCTET\nsize = 4OCTET", OctetsType(Length("prefix", 4))),
        ("x = size 1*OCTET\nsize = 4OCTET", OctetsType(Length("prefix", 4), 1)),
        ("x = n *word\nword = n *VCHAR\nn = OCTET", ListType(1, TextType(Length("prefix", 1), WORD))),
        ("x = n *port\nport = 2OCTET ; a number\nn = 4OCTET", ListType(4, IntegerType(2))),
        ("x = n *key\nkey = 16OCTET\nn = 2OCTET", ListType(2, OctetsType(Length("fixed", 16), 16))),
        (
            "x = n *( k v )\nk = l *VCHAR\nv = m *VCHAR\nn = 4OCTET\nl = OCTET\nm = 4OCTET",
            PairsType(4, TextType(Length("prefix", 1), WORD), TextType(Length("prefix", 4), WORD)),
        ),
        (
            "x = n *pair\npair = word ; written name=value\nword = n *VCHAR\nn = OCTET",
            PairsType(1, TextType(Length("prefix", 1), WORD), None, "first", "pair"),
        ),
        ("x = *OCTET", OctetsType(REST)),
        ("x = 1*OCTET", OctetsType(REST, 1)),
        ("x = FRAME", OctetsType(REST)),
        ("x = 2*4OCTET", OctetsType(REST, 2, 4)),
        ('x = 1*( ALPHA / "." )', TextType(REST, "[\\x41-\\x5a\\x61-\\x7a\\x2e]+")),
        ("x = *VCHAR %x00", TextType(REST, WORD, terminated=True)),
        ("x = 4OCTET / x-none\nx-none = %xFF.FF.FF.FF", IntegerType(4)),
        ("x = 16OCTET / nil\nnil = 16%x00", OctetsType(Length("fixed", 16), 16)),
        ("x = get | put\nget = %x01\nput = %x02", IntegerType(1, enum="x")),
        ('x = %s"NFPC01" / %s"NFPW01" ; ZeroMQ frame', KeywordType(("NFPC01", "NFPW01"))),
    ],
)  # fmt: skip
def test_a_shape_and_its_type(tmp_path: Path, rules: str, type: Type) -> None:
    frame = "FRAME" in rules or "ZeroMQ frame" in rules
    if frame:
        found = compiled(tmp_path, f"list = A / B\nA = %xAA %x01 x\nB = %xAA %x02\n{rules}")
        assert layout(found.protocol.messages[0])[1] == {"x": type}
        return
    found_type, warnings = field(tmp_path, rules)
    assert found_type == type
    assert not [code for code in warnings if code.startswith("W4")]


@pytest.mark.parametrize("width", [1, 2, 4, 8])
def test_octets_of_a_usual_width_are_assumed_to_be_an_integer(tmp_path: Path, width: int) -> None:
    assert field(tmp_path, f"x = {width}OCTET") == (IntegerType(width), ["W401"])


def test_words_that_are_alike(tmp_path: Path) -> None:
    found = compiled(tmp_path, 'list = A / B\nA = %x01 x\nB = %x02\nx = "a" / "b" / "a" ; ZeroMQ frame\n')
    assert layout(found.protocol.messages[0])[1] == {"x": KeywordType(("a", "b"), folded=True)}


def test_a_sentinel_is_a_constant_of_the_package(tmp_path: Path) -> None:
    found = compiled(
        tmp_path, "list = A / B\nA = %x01 x\nB = %x02\nx = 2OCTET / x-any\nx-any = %xFF.FE ; All.\n"
    )
    (constant,) = found.protocol.constants
    assert (constant.name, constant.value, constant.doc) == ("X_ANY", 0xFFFE, "All.")
    assert found.protocol.messages[0].fields[1].sentinels == ("X_ANY",)


def test_one_size_rule_is_a_length_here_and_a_count_there(tmp_path: Path) -> None:
    grammar = "list = A / B\nA = %x01 x y\nB = %x02\nx = size *VCHAR\ny = size *x\nsize = OCTET\n"
    found = compiled(tmp_path, grammar)
    text = TextType(Length("prefix", 1), WORD)
    assert layout(found.protocol.messages[0]) == [
        {"id": ConstantType("01", number=1), "x": text, "y": ListType(1, text)}
    ]
    assert found.warnings == ()


def test_a_size_that_is_a_field_is_said_not_to_be_a_length(tmp_path: Path) -> None:
    grammar = "list = A / B\nA = %x01 size x\nB = %x02\nsize = 2OCTET ; a number\nx = *OCTET\n"
    assert [warning.code for warning in compiled(tmp_path, grammar).warnings] == ["W402"]


def test_alternatives_with_a_tag_are_a_union(tmp_path: Path) -> None:
    grammar = "PROTO = a / b\na = magic version %x01 x\nb = magic version %x02\nmagic = %x8E\nversion = %x01\nx = *OCTET\n"
    protocol = compiled(tmp_path, grammar).protocol
    assert protocol.selectors == (Selector(0, 3),)
    assert [message.tags for message in protocol.messages] == [("8e0101",), ("8e0102",)]


def test_messages_are_what_a_role_sends(tmp_path: Path) -> None:
    grammar = (
        "dialog = use\nuse = C:ASK ( S:TELL / fault )\nfault = S:NO\nASK = %x01\nTELL = %x02\nS:NO = %x03\n"
    )
    found = compiled(tmp_path, grammar)
    assert [message.rule for message in found.protocol.messages] == ["ASK", "TELL", "S:NO"]
    assert {w.code for w in found.warnings if w.code.startswith("W4")} == {"W410"}


def test_messages_are_rules_that_begin_with_a_constant_and_nothing_uses(tmp_path: Path) -> None:
    found = compiled(tmp_path, "ASK = sig %x01\nTELL = sig %x02 x\nsig = %xAA %xA1\nx = *OCTET\n")
    assert [message.rule for message in found.protocol.messages] == ["ASK", "TELL"]
    assert [warning.code for warning in found.warnings] == ["W405", "W405"]


FRAMES = """\
identity = 1*OCTET   ; ZeroMQ frame
delimiter = 0OCTET   ; empty ZeroMQ frame
head-a = %x01   ; ZeroMQ frame
head-b = %x02   ; ZeroMQ frame
body = *VCHAR   ; ZeroMQ frame
more = FRAME
"""


def test_frames_and_all_that_are_left(tmp_path: Path) -> None:
    grammar = f"list = A / B\nA = head-a body *more\nB = head-b\n{FRAMES}"
    message, _ = compiled(tmp_path, grammar).protocol.messages
    assert layout(message) == [
        {"head_a": ConstantType("01", number=1)},
        {"body": TextType(REST, WORD)},
        {"more": OctetsType(REST)},
    ]
    assert isinstance(message.parts[2], Rest)


def test_routes_up_to_a_delimiter_are_a_stack(tmp_path: Path) -> None:
    grammar = f"list = A / B\nA = *identity delimiter head-a\nB = routing head-b\nrouting = *identity delimiter\n{FRAMES}"
    first, second = compiled(tmp_path, grammar).protocol.messages
    assert isinstance(first.parts[0], Stack) and isinstance(second.parts[0], Stack)
    assert layout(first)[0] == {"identity": OctetsType(REST, 1)}
    assert layout(second)[0] == {"routing": OctetsType(REST, 1)}


def test_a_delimiter_ends_routes_before_any_number_of_frames(tmp_path: Path) -> None:
    grammar = f"list = A / B\nA = *identity delimiter head-a *more\nB = head-b\n{FRAMES}"
    stack, head, rest = compiled(tmp_path, grammar).protocol.messages[0].parts
    assert isinstance(stack, Stack) and stack.delimiter == ""
    assert isinstance(head, Frame) and isinstance(rest, Rest)


def test_flags_announce_parts(tmp_path: Path) -> None:
    grammar = """\
    list = A / B
    A = [topic] [payload / json] head-a
    B = head-b
    topic = *VCHAR   ; ZeroMQ frame
    payload = *OCTET   ; ZeroMQ frame
    json = JSON   ; ZeroMQ frame
    head-a = %x01 flags   ; ZeroMQ frame
    head-b = %x02 flags   ; ZeroMQ frame
    flags = OCTET
    flag-topic = %x01   ; There is a topic.
    flag-payload = %x02
    flag-json = %x04
    flag-late = %x08
    """
    protocol = compiled(tmp_path, grammar).protocol
    presence = [part.presence for part in protocol.messages[0].parts if not isinstance(part, Rest)]
    assert presence == [Announced(1, 1), Announced(6, 2), Announced(6, 4), Always()]
    assert [(bit.name, bit.value, bit.announces) for bit in protocol.flags] == [
        ("TOPIC", 1, "topic"), ("PAYLOAD", 2, "payload"), ("JSON", 4, "json"), ("LATE", 8, None),
    ]  # fmt: skip
    assert layout(protocol.messages[0])[2] == {"json": JsonType()}
    assert layout(protocol.messages[0])[3]["flags"] == IntegerType(1, bitmask=True)


def test_last_frames_are_told_by_their_number(tmp_path: Path) -> None:
    grammar = (
        "list = A / B\nA = %x01 [ x [ y ] ]\nB = %x02\nx = *OCTET ; ZeroMQ frame\ny = *OCTET ; ZeroMQ frame\n"
    )
    message = compiled(tmp_path, grammar).protocol.messages[0]
    assert [part.presence for part in message.parts if not isinstance(part, Rest)] == [
        Always(), Counted(), Counted(),
    ]  # fmt: skip
    assert all(found.nullable and not found.required for found in message.fields[1:])


def test_whole_frames_of_words_tell_messages_apart(tmp_path: Path) -> None:
    grammar = """\
    list = A / B
    A = empty kind-a body
    B = empty kind-b body
    empty = 0OCTET   ; ZeroMQ frame
    kind-a = "GET" / "HEAD"   ; ZeroMQ frame
    kind-b = "PUT"   ; ZeroMQ frame
    body = *OCTET   ; ZeroMQ frame
    """
    protocol = compiled(tmp_path, grammar).protocol
    assert protocol.selectors == (Selector(1, None),) and protocol.folded
    assert [message.tags for message in protocol.messages] == [("676574", "68656164"), ("707574",)]
    exact = compiled(
        tmp_path, grammar.replace('"', '%s"', 1).replace(' / "', ' / %s"').replace('= "P', '= %s"P')
    ).protocol
    assert not exact.folded
    assert [message.tags for message in exact.messages] == [("474554", "48454144"), ("505554",)]


@pytest.mark.parametrize(
    ("rules", "code"),
    [
        ("x = y z\ny = *OCTET\nz = *OCTET", "E409"),
        ("x = n *y\ny = *VCHAR\nn = OCTET", "E409"),
        ("x = n *( y y )\ny = *VCHAR\nn = OCTET", "E409"),
        ("x = 16OCTET / y\ny = 15%x00", "E419"),
        ("x = [ y ] z\ny = 4OCTET\nz = *OCTET", "E405"),
        ("x = <whatever fits>", "E401"),
        ("x = %x100", "E422"),
        ("x = 70000%x00", "E401"),
        ("x = y\ny = z\nz = x", "E412"),
    ],
)
def test_what_has_no_layout_is_said(tmp_path: Path, rules: str, code: str) -> None:
    found = faults(tmp_path, f"list = A / B\nA = %xAA %x01 x\nB = %xAA %x02\n{rules}\n")
    assert code in {fault.split()[0] for fault in found}


def test_rules_that_double_each_other_cost_no_more_than_their_length(tmp_path: Path) -> None:
    doubling = "".join(f"r{n} = r{n + 1} r{n + 1}\n" for n in range(60))
    assert faults(tmp_path, f"list = A / B\nA = %x01 r0\nB = %x02\n{doubling}r60 = %x00\n")
