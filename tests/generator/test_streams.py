"""Streams of messages that say themselves where they end: a varint, digits, a count, a terminator.

Octets were derived by hand from the grammars, and are cut in every way. Every cut gives the same messages, and the
same fault.
"""

from __future__ import annotations

import runpy
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specwire.generated.errors import DecodeError, EncodeError
from specwire.generated.layout import ProtocolLayout
from specwire.generated.messages import Message
from specwire.generated.stream import MessageStream, UnitFraming
from specwire.generator import ir
from specwire.generator.diagnostics import SpecError
from specwire.generator.emit.layout import emit
from specwire.generator.passes.streams import find_fault
from tests.examples import examples
from tests.generated import strategies
from tests.generated.agreement import mutated
from tests.generated.test_linear import assert_linear
from tests.generator import layouts
from tests.generator.compiling import compiled
from tests.generator.test_layouts import generated

PROFILE = 'name = "demo"\nstream.units = true\n'


@contextmanager
def package(folder: Path, grammar: str, profile: str) -> Iterator[ModuleType]:
    """Import the package of a grammar."""
    with generated(folder / "packages", compiled(folder, grammar, PROFILE + profile).protocol) as module:
        yield module


def measured(folder: Path, grammar: str, profile: str) -> ProtocolLayout:
    """Return the layout of a protocol whose messages are measured."""
    protocol = compiled(folder, grammar, PROFILE + profile).protocol
    assert protocol.stream == ir.UnitStream()
    file = folder / "demo_layout.py"
    file.write_text(emit(protocol), encoding="utf-8")
    layout: ProtocolLayout = runpy.run_path(str(file))["LAYOUT"]
    return layout


def chunkings(octets: bytes) -> Iterator[list[bytes]]:
    """Yield the octets in one chunk, one by one, and in every two chunks."""
    yield [octets]
    yield each_octet(octets)
    for at in range(1, len(octets)):
        yield [octets[:at], octets[at:]]


def read(stream: MessageStream[Any], chunks: Iterable[bytes]) -> tuple[list[Any], DecodeError | None]:
    """Return the messages on a stream, and the error that ends it."""
    messages: list[Any] = []
    try:
        for chunk in chunks:
            messages += stream.feed(chunk)
        stream.eof()
    except DecodeError as error:
        return messages, error
    return messages, None


def read_in_any_chunks(
    make: Callable[[], MessageStream[Any]], octets: bytes
) -> tuple[list[Any], dict[str, Any] | None]:
    """Return the messages and the attributes of the error, which are the same for all chunks."""
    results = [read(make(), chunks) for chunks in chunkings(octets)]
    messages, error = results[0]
    for others, other in results:
        assert others == messages
        assert (other and other.attributes()) == (error and error.attributes())
    return messages, error.attributes() if error else None


def assert_fault(error: dict[str, Any] | None, **expected: Any) -> None:
    assert error is not None
    assert {name: error[name] for name in expected} == expected


MQTT = """
session = *( connect / publish / ping )
connect = %x10 remaining-length client
publish = %x30 remaining-length topic payload
ping = %xC0 %x00
remaining-length = 1*4OCTET
client = size *VCHAR
topic = size *VCHAR
size = 2OCTET
payload = *OCTET
"""
MQTT_PROFILE = '[types.remaining-length]\ntype = "varint"\ncounts = "*"\n'


def test_a_varint_counts_the_rest(tmp_path: Path) -> None:
    with package(tmp_path, MQTT, MQTT_PROFILE) as mqtt:
        messages = [
            mqtt.Connect(client="me"),
            mqtt.Publish(topic="t", payload=b"\xc0\x00"),
            mqtt.Ping(),
            mqtt.Publish(topic="", payload=bytes(200)),
        ]
        octets = b"".join((
            b"\x10\x04\x00\x02me",
            b"\x30\x05\x00\x01t\xc0\x00",
            b"\xc0\x00",
            b"\x30\xca\x01\x00\x00" + bytes(200),  # 202 is 0x4a | 0x80, 0x01
        ))  # fmt: skip
        assert b"".join(map(mqtt.frame, messages)) == octets
        assert read_in_any_chunks(mqtt.StreamDecoder, octets) == (messages, None)


def test_faults_where_a_varint_counts(tmp_path: Path) -> None:
    with package(tmp_path, MQTT, MQTT_PROFILE) as mqtt:
        ping, good = b"\xc0\x00", [mqtt.Ping()]
        short = partial(mqtt.StreamDecoder, max_octets=100)
        found, error = read_in_any_chunks(short, ping + b"\xd0\x00")
        assert found == good
        assert_fault(error, kind="tag", frame=0, offset=0, found="0xd0")
        found, error = read_in_any_chunks(short, ping + b"\xc0\x01")
        assert found == good
        assert_fault(error, message_name="ping", kind="constant", offset=1, expected="0x00", found="0x01")
        # 97 octets are the most after one octet of type and two of length.
        longest = b"\x30\xe1\x00\x00\x00" + bytes(95)
        assert read_in_any_chunks(short, longest) == ([mqtt.Publish(topic="", payload=bytes(95))], None)
        found, error = read_in_any_chunks(short, ping + b"\x30\xe2\x00\x00")
        assert found == good
        assert_fault(error, kind="limit", offset=1, expected="at most 100 octets", found="101")
        found, error = read_in_any_chunks(short, b"\x30\xff\xff\xff\xff\x01")
        assert_fault(error, message_name="publish", field="remaining_length", kind="range", offset=1)
        # The length counts more than the topic says, and less.
        found, error = read_in_any_chunks(short, b"\x10\x04\x00\x01me")
        assert_fault(error, message_name="connect", kind="trailing", offset=5)
        found, error = read_in_any_chunks(short, b"\x10\x03\x00\x02m")
        assert_fault(error, message_name="connect", field="client", kind="length")
        for size in range(1, 7):
            found, error = read_in_any_chunks(short, ping + b"\x10\x05\x00\x03you"[:size])
            assert found == good
            assert_fault(error, field="framing", kind="length", offset=size, found="the end of the stream")


STORE = """
session = *( set / take / deleted )
set = %s"set " key SP flags SP bytes CRLF data CRLF
take = %s"take " key CRLF
deleted = %s"deleted " CRLF
key = 1*VCHAR
flags = 1*5DIGIT
bytes = 1*7DIGIT
data = *OCTET
"""
STORE_PROFILE = (
    '[types.flags]\ntype = "decimal"\n[types.bytes]\ntype = "decimal"\ncounts = "data"\n'
)  # fmt: skip


def test_lines_and_a_value_that_digits_count(tmp_path: Path) -> None:
    with package(tmp_path, STORE, STORE_PROFILE) as store:
        messages = [
            store.Set(key="k", flags=7, data=b"ab\r\n"),
            store.Take(key="other"),
            store.Set(key="k", flags=0, data=b""),
            store.Deleted(),
        ]
        octets = b"set k 7 4\r\nab\r\n\r\ntake other\r\nset k 0 0\r\n\r\ndeleted \r\n"
        assert b"".join(map(store.frame, messages)) == octets
        assert read_in_any_chunks(store.StreamDecoder, octets) == (messages, None)


def test_faults_of_lines(tmp_path: Path) -> None:
    with package(tmp_path, STORE, STORE_PROFILE) as store:
        line, good = b"take a\r\n", [store.Take(key="a")]
        short = partial(store.StreamDecoder, max_octets=40)
        found, error = read_in_any_chunks(short, line + b"give b\r\n")
        assert found == good
        assert_fault(error, message_name=None, kind="tag", offset=0)
        found, error = read_in_any_chunks(short, line + b"set k x 4\r\nab\r\n\r\n")
        assert found == good
        assert_fault(error, message_name="set", field="flags", kind="text", offset=6)
        found, error = read_in_any_chunks(short, line + b"set k 1 4\r\nabcdef\r\n")
        assert found == good
        assert_fault(error, message_name="set", kind="constant", offset=15, found="0x6566")
        found, error = read_in_any_chunks(short, line + b"set k 1 999\r\n")
        assert_fault(error, kind="limit", offset=8, expected="at most 40 octets", found="1012")
        found, error = read_in_any_chunks(short, line + b"take " + b"a" * 80)
        assert found == good
        assert_fault(error, field="framing", kind="limit", offset=5, found="more")
        # The line ends after 39 octets, and the second octet of its end is the last that is allowed.
        for size, kind in ((33, None), (34, "limit")):
            found, error = read_in_any_chunks(short, b"take " + b"a" * size + b"\r\n")
            assert (error and error["kind"]) == kind
            assert len(found) == (kind is None)
        found, error = read_in_any_chunks(short, line + b"set k 1 3\r\nab")
        assert found == good
        assert_fault(error, field="framing", kind="length", offset=13)


def test_a_long_line_is_searched_once(tmp_path: Path) -> None:
    """Octet by octet, 200,000 octets would otherwise be searched 200,000 times."""
    with package(tmp_path, STORE, STORE_PROFILE) as store:
        decoder = store.StreamDecoder()
        line = b"take " + b"a" * 200_000 + b"\r\n"
        for at in range(len(line) - 1):
            assert decoder.feed(line[at : at + 1]) == []
        assert decoder.feed(line[-1:]) == [store.Take(key="a" * 200_000)]


def test_work_is_linear(tmp_path: Path) -> None:
    """Octet by octet: what was measured is not measured again."""
    tokens, values = measured(tmp_path, TOKENS, ""), measured(tmp_path, RESP, RESP_PROFILE)

    def lines(size: int) -> Callable[[], object]:
        octets = b"get" + b" a" * size + b"\r\n"
        return lambda: read(lengths(tokens)(), each_octet(octets))

    def arrays(size: int) -> Callable[[], object]:
        octets = b"*%d\r\n" % size + b"*2\r\n:1\r\n+a\r\n" * size
        return lambda: read(lengths(values, 10_000)(), each_octet(octets))

    assert_linear(lines, 30)
    assert_linear(arrays, 10)


LITTLE = """
session = *( batch / note )
batch = %xB0 number *item
note = %xB1 long-size text checked
number = 2OCTET
long-size = 4OCTET
text = *VCHAR
checked = 2OCTET
item = word / pair
word = %x01 size *OCTET
pair = %x02 left right
left = 2OCTET
right = 2OCTET
size = OCTET
"""
LITTLE_PROFILE = (
    '[types.number]\norder = "little"\ncounts = "item"\n[types.size]\nscope = "next"\n'
    '[types.long-size]\norder = "little"\ncounts = ["text", "checked"]\nplus = 4\n'
    '[types.checked]\ntype = "integer"\nchecksum = "crc16-modbus"\nover = ["text"]\n'
)  # fmt: skip


def test_little_endian_numbers(tmp_path: Path) -> None:
    """A count of records that begin with their kind, and a length that counts itself."""
    with package(tmp_path, LITTLE, LITTLE_PROFILE) as little:
        word, pair = little.Word(data=b"abc"), little.Pair(left=1, right=2)
        messages = [little.Batch(item=(pair, word)), little.Note(text="123456789"), little.Batch(item=())]
        octets = b"".join((
            b"\xb0\x02\x00" + b"\x02\x00\x01\x00\x02" + b"\x01\x03abc",
            b"\xb1\x0f\x00\x00\x00" + b"123456789" + b"\x4b\x37",  # the check value of CRC-16/MODBUS
            b"\xb0\x00\x00",
        ))  # fmt: skip
        assert b"".join(map(little.frame, messages)) == octets
        assert read_in_any_chunks(little.StreamDecoder, octets) == (messages, None)
        short = partial(little.StreamDecoder, max_octets=50)
        # The third item is of no kind.
        _, error = read_in_any_chunks(short, octets[:3] + b"\x02\x00\x01\x00\x02\x03")
        assert_fault(error, message_name="batch", field="item[1]", kind="tag", offset=8, found="0x03")
        # 60,000 items have at least 60,000 octets.
        _, error = read_in_any_chunks(short, b"\xb0\x60\xea\x01")
        assert_fault(error, kind="limit", offset=1, found="60003")
        # The length counts itself, so it is at least 4.
        _, error = read_in_any_chunks(short, b"\xb1\x03\x00\x00\x00")
        assert_fault(error, message_name="note", field="long_size", kind="range", expected="at least 4")


RESP = """
reply = value
value = simple / whole / nil / bulk / array
simple = "+" text CRLF
whole = ":" number CRLF
nil = "$-1" CRLF
bulk = "$" size CRLF data CRLF
array = "*" count CRLF *value
text = *%x20-7E
number = ["-"] 1*19DIGIT
size = 1*9DIGIT
count = 1*9DIGIT
data = *OCTET
"""
RESP_PROFILE = (
    'messages = ["reply"]\n[types.number]\ntype = "decimal"\n[types.size]\ntype = "decimal"\ncounts = "data"\n'
    '[types.count]\ntype = "decimal"\ncounts = "value"\n'
)  # fmt: skip


def lengths(layout: ProtocolLayout, max_octets: int = 1000) -> Callable[[], MessageStream[bytes]]:
    """Return a stream whose messages are their own octets."""
    framing = UnitFraming(layout.protocol, layout.edition, layout=layout)
    return lambda: MessageStream(framing, lambda parts: parts[0], max_octets)


def test_values_inside_values(tmp_path: Path) -> None:
    layout = measured(tmp_path, RESP, RESP_PROFILE)
    messages = [
        b"+OK\r\n",
        b"*5\r\n+OK\r\n$-1\r\n$4\r\na\r\nb\r\n*0\r\n:-7\r\n",
        b"$0\r\n\r\n",
        b":12\r\n",
        b"*1\r\n*2\r\n*0\r\n*1\r\n:1\r\n",
    ]
    assert read_in_any_chunks(lengths(layout), b"".join(messages)) == (messages, None)


def test_values_too_deep(tmp_path: Path) -> None:
    """However deep the values, no more are measured than `max_depth`; the decoder refuses the octets up to there."""
    layout = measured(tmp_path, RESP, RESP_PROFILE)
    assert layout.max_depth == 64
    deep = b"*1\r\n" * 63 + b":1\r\n"
    assert read(lengths(layout)(), [deep]) == ([deep], None)
    stream = lengths(layout, 10**6)()
    assert stream.feed(b"*1\r\n" * 1000)[0] == b"*1\r\n" * 64 + b"*"


TOKENS = """
session = *( get / touch )
get = "get " key *( SP key ) CRLF
touch = "touch " key [ " noreply" ] CRLF
key = 1*%x21-7E
"""


def test_tokens_up_to_the_end_of_a_line(tmp_path: Path) -> None:
    """Letters of quoted words are of either case."""
    layout = measured(tmp_path, TOKENS, "")
    messages = [b"get a bc\r\n", b"GET d\r\n", b"touch k noreply\r\n", b"Touch kl\r\n"]
    assert read_in_any_chunks(lengths(layout), b"".join(messages)) == (messages, None)
    # The decoder refuses the octets up to the first that is wrong.
    found, _ = read_in_any_chunks(lengths(layout), b"get  ")
    assert found == [b"get  "]
    for endless in (b"get " + b"a" * 60, b"touch a" + b"b" * 60, b"get" + b" a" * 60):
        found, error = read_in_any_chunks(lengths(layout, 50), endless)
        assert found == []
        assert_fault(error, kind="limit", expected="at most 50 octets", found="more")


def test_bits_that_count_and_announce(tmp_path: Path) -> None:
    grammar = """
session = *( packet / other )
packet = %xA0 header *source [ extension ] [ "x" level ] checked
other = %xA1
header = 2OCTET
source = 2OCTET
extension = 3OCTET
level = OCTET
checked = %x00
"""
    profile = """
[types.header]
order = "little"
[types.header.bits]
more = 1
number = { width = 4, counts = "source" }
unused = { width = 11, spare = true }
[types.extension]
presence = { field = "more" }
"""
    layout = measured(tmp_path, grammar, profile)
    messages = [
        b"\xa0\x00\x00" + b"\x00",
        b"\xa0\x00\x90" + b"s1s2" + b"ext" + b"\x00",  # 1 0010 in the high bits of the second octet
        b"\xa0\xff\x0f" + b"s1" + b"x9" + b"\x00",
        b"\xa1",
    ]
    assert read_in_any_chunks(lengths(layout), b"".join(messages)) == (messages, None)


def test_messages_that_patterns_tell_apart(tmp_path: Path) -> None:
    grammar = """
session = *( named / plain )
named = %x01 number %x02 name CRLF
plain = %x01 number %x03
number = 2OCTET
name = *%x61-7A
"""
    with package(tmp_path, grammar, '[types.number]\norder = "little"\n') as module:
        messages = [module.Plain(number=1), module.Named(number=2, name="ab"), module.Plain(number=770)]
        octets = b"\x01\x01\x00\x03" + b"\x01\x02\x00\x02ab\r\n" + b"\x01\x02\x03\x03"
        assert read_in_any_chunks(module.StreamDecoder, octets) == (messages, None)
        found, error = read_in_any_chunks(module.StreamDecoder, b"\x01\x01\x00\x03" + b"\x01\x02\x03\x04")
        assert found == messages[:1]
        assert_fault(error, kind="tag", offset=3, found="0x04")


def test_heads_of_fixed_sizes(tmp_path: Path) -> None:
    """If the profile says that messages are on a stream, none needs a size."""
    grammar = """
session = *( hi / hello )
hi = %s"HI"
hello = %s"HELLO" rank
rank = OCTET
"""
    with package(tmp_path, grammar, "") as module:
        assert len(module.stream.FRAMING.heads) == 2
        messages = [module.Hello(rank=1), module.Hi()]
        assert read_in_any_chunks(module.StreamDecoder, b"HELLO\x01HI") == (messages, None)


def test_heads_in_letters_of_either_case(tmp_path: Path) -> None:
    with package(tmp_path, 'session = *( hi / hello )\nhi = "HI"\nhello = "HELLO" OCTET\n', "") as module:
        assert module.stream.FRAMING.heads == ()
        stream = lengths(module.layout.LAYOUT)
        assert read_in_any_chunks(stream, b"HIhihElLo1") == ([b"HI", b"hi", b"hElLo1"], None)


SIDES = """
request = size text
reply = size text
size = {octets}
text = *VCHAR
"""
SIDES_PROFILE = """
name = "demo"
messages = ["request", "reply"]
stream.units = true
roles.C = { name = "client", socket = "DEALER" }
roles.S = { name = "server", socket = "ROUTER" }
message.request.senders = ["C"]
message.reply.senders = ["S"]
types.size.counts = "text"
"""


@pytest.mark.parametrize(("octets", "more"), [("OCTET", ""), ("1*3OCTET", 'types.size.type = "varint"\n')])
def test_only_the_sender_tells_messages_apart(octets: str, more: str, tmp_path: Path) -> None:
    compilation = compiled(tmp_path, SIDES.format(octets=octets), SIDES_PROFILE + more)
    with generated(tmp_path / "packages", compilation.protocol) as module:
        for sender, kind in (("C", module.Request), ("S", module.Reply)):
            decoder = module.StreamDecoder(sender=sender)
            assert decoder.feed(b"\x02hi\x00\x03") == [kind(text="hi"), kind(text="")]
            assert decoder.feed(b"you") == [kind(text="you")]
        for unknown in (None, "X"):
            with pytest.raises(DecodeError) as caught:
                module.StreamDecoder(sender=unknown).feed(b"\x02hi")
            assert (caught.value.kind, caught.value.offset) == ("tag", 0)
            assert caught.value.expected == "a sender: C for Request or S for Reply"


TEXT = "text = *%x20-7E\n"
ENDLESS = {
    "up to the end of the frame": ("A = %x01 x\nx = *OCTET\n", "'A' ends where its frame ends"),
    "several frames": ("A = %x01 body\nbody = FRAME\n", "'A' is not one frame"),
    "digits": ('A = %x01 n\nn = 1*3DIGIT\n', "'A' ends where its frame ends"),
    "the longest run": ('A = "a" w [ "1" ]\nw = 1*%x61-7A\n', "only the octets after 'A' say where it ends"),
    "an option at the end": ('A = "a" CRLF [ "x" OCTET ]\n', "only the octets after 'A' say where it ends"),
    "a value at the end": ('A = "a" CRLF [ OCTET ]\n', "'A' ends where its frame ends"),
    "one constant begins another": ('A = "HE"\nB = "HELLO"\n', "'A' may begin like 'B'"),
    "one begins like another": (f'A = "qu" CRLF\nB = "q" text CRLF\n{TEXT}', "'B' may begin like 'A'"),
}  # fmt: skip


@pytest.mark.parametrize(("grammar", "reason"), ENDLESS.values(), ids=ENDLESS)
def test_messages_whose_end_is_not_defined(grammar: str, reason: str, tmp_path: Path) -> None:
    messages = [name for name in "AB" if f"{name} = " in grammar]
    profile = f'name = "demo"\nmessages = {messages}\nstream.units = true\n'
    profile += '[types.n]\ntype = "decimal"\n' if "DIGIT" in grammar else ""
    with pytest.raises(SpecError) as caught:
        compiled(tmp_path, grammar, profile)
    (error,) = [found for found in caught.value.diagnostics if found.code.startswith("E")]
    assert error.code == "E420"
    assert error.message == f"the end of a message on a stream is not defined: {reason}"


@pytest.mark.parametrize(
    ("kind", "ext"),
    [("", 'presence = { field = "kind", values = [7] }'), ('counts = "ext"', "")],
    ids=["an option", "a length"],
)
def test_a_number_among_skipped_octets_decides_nothing_after_them(
    kind: str, ext: str, tmp_path: Path
) -> None:
    option, octets = ("[ext]", "3OCTET") if ext else ("ext", "*OCTET")
    grammar = f"A = %x01 size kind value {option} %x99\nsize = OCTET\nkind = OCTET\nvalue = 2OCTET\next = {octets}\n"
    profile = 'name = "demo"\nmessages = ["A"]\n[types.size]\ncounts = ["kind", "value"]\n'
    profile += f'[types.kind]\ntype = "integer"\n{kind}\n[types.ext]\ntype = "octets"\n{ext}\n'
    protocol = compiled(tmp_path, grammar, profile).protocol
    with generated(tmp_path / "packages", protocol) as module:
        values = {"kind": 7} if ext else {}
        message = module.A(**values, value=258, ext=b"ext")
        assert message.encode() == [bytes([1, 3, 7 if ext else 3, 1, 2]) + b"ext\x99"]
        assert module.decode(message.encode()) == message
    with pytest.raises(SpecError) as caught:
        compiled(tmp_path / "stream", grammar, profile + "[stream]\nunits = true\n")
    (error,) = [found for found in caught.value.diagnostics if found.code.startswith("E")]
    assert error.code == "E420"
    assert error.message.endswith(
        "'kind' is among octets that another number counts, and decides what follows them"
    )


def test_a_head_that_longer_messages_follow_is_no_fault(tmp_path: Path) -> None:
    """`stats` is at least as long as the constant with which `stats-all` begins, so none is read too early."""
    grammar = f"""
session = *( stats / stats-all )
stats = %s"st" text CRLF %x00.00
stats-all = %s"stAA" CRLF
{TEXT}
"""
    with package(tmp_path, grammar, "") as module:
        octets = b"stA\r\n\0\0" + b"stAA\r\n" + b"st\r\n\0\0"
        messages = [module.Stats(text="A"), module.StatsAll(), module.Stats(text="")]
        assert read_in_any_chunks(module.StreamDecoder, octets) == (messages, None)


TARGETS = ("package", "strategies")
ENDING = layouts.valued().filter(lambda protocol: any(find_fault([one]) is None for one in protocol.messages))


@settings(max_examples=examples(12), deadline=None, suppress_health_check=list(HealthCheck))
@given(ENDING, st.data())
def test_random_layouts(protocol: ir.Protocol, data: st.DataObject) -> None:
    """A stream of messages, and one that is nearly so, in chunks of any size."""
    ending = tuple(one for one in protocol.messages if find_fault([one]) is None)
    protocol = msgspec.structs.replace(protocol, messages=ending, stream=ir.UnitStream())
    chance = Random(data.draw(st.integers(0, 2**32)))
    with TemporaryDirectory() as folder, generated(Path(folder), protocol, TARGETS) as module:
        messages = [
            message
            for message in data.draw(st.lists(strategies.messages(module), min_size=1, max_size=5))
            if is_encoded(message)
        ]
        octets = b"".join(map(module.frame, messages))
        for chunks in ([octets], each_octet(octets), any_chunks(octets, chance)):
            assert read(module.StreamDecoder(), chunks) == (messages, None)
        for _ in range(20):
            spoilt = b"".join(mutated([octets], chance))
            found, error = read(module.StreamDecoder(max_octets=500), [spoilt])
            for chunks in (each_octet(spoilt), any_chunks(spoilt, chance)):
                others, other = read(module.StreamDecoder(max_octets=500), chunks)
                assert others == found
                assert (other and other.attributes()) == (error and error.attributes())


def is_encoded(message: Message) -> bool:
    try:
        return bool(message.encode())
    except EncodeError:
        return False


def each_octet(octets: bytes) -> list[bytes]:
    return [octets[at : at + 1] for at in range(len(octets))]


def any_chunks(octets: bytes, chance: Random) -> list[bytes]:
    cuts = sorted(chance.sample(range(len(octets) + 1), min(5, len(octets))))
    return [octets[a:b] for a, b in pairwise([0, *cuts, len(octets)])]


def test_a_strict_stream_checks_characters(tmp_path: Path) -> None:
    """By default a text may have any characters but those that end it, as in `decode`."""
    grammar = 'a = "PUB" SP x SP n CRLF\nb = "PING" CRLF\nx = 1*ALPHA\nn = 1*DIGIT\n'
    profile = 'name = "demo"\nmessages = ["a", "b"]\n[types.n]\ntype = "decimal"\n[stream]\nunits = true\n'
    with generated(tmp_path, compiled(tmp_path / "grammars", grammar, profile).protocol) as module:
        octets = b"PUB x\r\nPING 2\r\n"
        assert module.StreamDecoder().feed(octets) == [module.A(x="x\r\nPING", n=2)]
        with pytest.raises(DecodeError) as caught:
            module.StreamDecoder(strict=True).feed(octets)
        assert (caught.value.field, caught.value.kind) == ("x", "text")
        assert module.StreamDecoder(strict=True).feed(b"PUB x 2\r\nPING\r\n") == [
            module.A(x="x", n=2),
            module.B(),
        ]
