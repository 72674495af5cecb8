"""Protocols from outside the ZeroMQ family, and Jupyter's: messages derived by hand from the published texts.

A case in tests/golden/family without a document is a grammar and a profile, written from the published text. The
octets are examples of that text, or were derived from it by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from specwire.generated.errors import DecodeError, EncodeError
from specwire.generator.pipeline import compile_protocol
from tests.generator.test_layouts import generated
from tests.golden_files import GOLDEN

Octets = str | bytes | list[str]
Case = tuple[Octets, Callable[[ModuleType], Any]]


@contextmanager
def package(folder: Path, name: str) -> Iterator[ModuleType]:
    """Generate and import the package of a case."""
    with generated(folder, compile_protocol(GOLDEN / "family" / name).protocol) as module:
        yield module


# RFC 1035, section 4.1.1: ID, then QR, Opcode, AA, TC, RD, RA, Z, RCODE, then four counts. The first is a query with
# recursion desired for www.example.com, type A (1), class IN (1); the second an answer with the name error (3), in
# which the three reserved bits are set; the third an inverse query without questions.
DNS: list[Case] = [
    (
        "db42 0100 0001 0000 0000 0000 03777777 07 6578616d706c65 03636f6d 00 0001 0001",
        lambda m: m.Message_(
            id_=0xDB42, qr=False, opcode=m.Opcode.QUERY, aa=False, tc=False, rd=True, ra=False, rcode=0, ancount=0,
            nscount=0, arcount=0,
            question=(m.Question(label=(b"www", b"example", b"com"), qtype=1, qclass=1),), records=b"",
        ),
    ),
    (
        "0001 8583 0000 0000 0000 0000",
        lambda m: m.Message_(
            id_=1, qr=True, opcode=0, aa=True, tc=False, rd=True, ra=True, rcode=3, ancount=0, nscount=0, arcount=0,
            question=(), records=b"",
        ),
    ),
    (
        "ffff 0a00 0000 0001 0000 0000 ab",
        lambda m: m.Message_(
            id_=0xFFFF, qr=False, opcode=m.Opcode.IQUERY, aa=False, tc=True, rd=False, ra=False, rcode=0, ancount=1,
            nscount=0, arcount=0, question=(), records=b"\xab",
        ),
    ),
]  # fmt: skip

# "Messaging in Jupyter", the wire protocol: identities, delimiter, HMAC, four dictionaries, buffers.
JUPYTER: list[Case] = [
    (
        ["75756964", "3c4944537c4d53473e", b"baddcafe".hex(), b"{}".hex(), b"{}".hex(), b"{}".hex(), b"{}".hex(), "00ff"],
        lambda m: m.Message_(
            identity=(b"uuid",), signature="baddcafe", header="{}", parent_header="{}", metadata="{}", content="{}",
            buffer=(b"\x00\xff",),
        ),
    ),
    (
        ["3c4944537c4d53473e", "", b'{"msg_id":"1"}'.hex(), b"{}".hex(), b"{}".hex(), b"{}".hex()],
        lambda m: m.Message_(
            identity=(), signature="", header='{"msg_id":"1"}', parent_header="{}", metadata="{}", content="{}", buffer=()
        ),
    ),
]  # fmt: skip

# The examples of memcached's description of its binary protocol: Add, Get, and a response to Get.
MEMCACHED: list[Case] = [
    (
        "8002 0005 08 00 0000 00000012 00000000 0000000000000000 deadbeef 00000e10 48656c6c6f 576f726c64",
        lambda m: m.Request(
            opcode=m.Opcode.ADD, extras=bytes.fromhex("deadbeef00000e10"), key=b"Hello", value=b"World"
        ),
    ),
    (
        "8000 0005 00 00 0000 00000005 00000000 0000000000000000 48656c6c6f",
        lambda m: m.Request(opcode=0, extras=b"", key=b"Hello", value=b""),
    ),
    (
        "8100 0000 04 00 0000 00000009 00000000 0000000000000001 deadbeef 576f726c64",
        lambda m: m.Response(opcode=0, cas=1, extras=bytes.fromhex("deadbeef"), key=b"", value=b"World"),
    ),
    (
        "8100 0000 00 00 0001 00000009 00000000 0000000000000000 4e6f7420666f756e64",
        lambda m: m.Response(opcode=0, status=m.Status.KEY_NOT_FOUND, extras=b"", key=b"", value=b"Not found"),
    ),
]  # fmt: skip


def _numbers(m: ModuleType, *numbers: int) -> tuple[Any, ...]:
    return tuple(m.IntegerRecord(number=number) for number in numbers)


# The examples of the Redis serialization protocol specification.
RESP2: list[Case] = [
    (b"+OK\r\n", lambda m: m.Simple(line="OK")),
    (b"-Error message\r\n", lambda m: m.Error(line="Error message")),
    (b":0\r\n", lambda m: m.Integer(number=0)),
    (b":-1000\r\n", lambda m: m.Integer(number=-1000)),
    (b"$5\r\nhello\r\n", lambda m: m.Bulk(data=b"hello")),
    (b"$0\r\n\r\n", lambda m: m.Bulk(data=b"")),
    (b"$-1\r\n", lambda m: m.NullBulk()),
    (b"*0\r\n", lambda m: m.Array(reply=())),
    (b"*-1\r\n", lambda m: m.NullArray()),
    (
        b"*2\r\n$5\r\nhello\r\n$5\r\nworld\r\n",
        lambda m: m.Array(reply=(m.BulkRecord(data=b"hello"), m.BulkRecord(data=b"world"))),
    ),
    (
        b"*5\r\n:1\r\n:2\r\n:3\r\n:4\r\n$5\r\nhello\r\n",
        lambda m: m.Array(reply=(*_numbers(m, 1, 2, 3, 4), m.BulkRecord(data=b"hello"))),
    ),
    (
        b"*2\r\n*3\r\n:1\r\n:2\r\n:3\r\n*2\r\n+Hello\r\n-World\r\n",
        lambda m: m.Array(
            reply=(
                m.ArrayRecord(reply=_numbers(m, 1, 2, 3)),
                m.ArrayRecord(reply=(m.SimpleRecord(line="Hello"), m.ErrorRecord(line="World"))),
            )
        ),
    ),
    (
        b"*3\r\n$5\r\nhello\r\n$-1\r\n$5\r\nworld\r\n",
        lambda m: m.Array(
            reply=(m.BulkRecord(data=b"hello"), m.NullBulkRecord(), m.BulkRecord(data=b"world"))
        ),
    ),
]
# MQTT 3.1.1, section 2.2.1 (types and flags of the fixed header) and chapter 3. CONNECT has a will with QoS 0, a user
# name and a password: C6 is 1 1 0 00 1 1 0. 3D is PUBLISH with DUP, QoS 2 and RETAIN.
MQTT: list[Case] = [
    (
        "10 1a 0004 4d515454 04 c6 000a 0001 61 0001 77 0002 6279 0001 75 0001 70",
        lambda m: m.Connect(
            will_retain=False, will_qos=0, clean_session=True, keep_alive=10, client_id="a", will_topic="w",
            will_message=b"by", user_name="u", password=b"p",
        ),
    ),
    (
        "10 0c 0004 4d515454 04 02 003c 0000",
        lambda m: m.Connect(
            will_retain=False, will_qos=0, clean_session=True, keep_alive=60, client_id="", will_topic=None,
            will_message=None, user_name=None, password=None,
        ),
    ),
    ("20 02 01 00", lambda m: m.Connack(session_present=True, return_code=m.ReturnCode.ACCEPTED)),
    (
        "30 05 0003 612f62",
        lambda m: m.Publish(dup=False, qos=0, retain=False, topic="a/b", packet_id=None, payload=b""),
    ),
    (
        "3d 09 0003 612f62 000a 6869",
        lambda m: m.Publish(
            dup=True, qos=m.Qos.EXACTLY_ONCE, retain=True, topic="a/b", packet_id=10, payload=b"hi"
        ),
    ),
    ("40 02 1234", lambda m: m.Puback(packet_id=0x1234)),
    ("50 02 1234", lambda m: m.Pubrec(packet_id=0x1234)),
    ("62 02 1234", lambda m: m.Pubrel(packet_id=0x1234)),
    ("70 02 1234", lambda m: m.Pubcomp(packet_id=0x1234)),
    (
        "82 0e 000a 0003 612f62 01 0003 632f64 02",
        lambda m: m.Subscribe(
            packet_id=10,
            subscription=(
                m.Subscription(topic_filter="a/b", requested_qos=1),
                m.Subscription(topic_filter="c/d", requested_qos=2),
            ),
        ),
    ),
    ("90 05 000a 00 02 80", lambda m: m.Suback(packet_id=10, suback_code=(0, 2, m.SubackCode.FAILURE))),
    ("a2 0c 000a 0003 612f62 0003 632f64", lambda m: m.Unsubscribe(packet_id=10, topic_filter=("a/b", "c/d"))),
    ("b0 02 000a", lambda m: m.Unsuback(packet_id=10)),
    ("c0 00", lambda m: m.Pingreq()),
    ("d0 00", lambda m: m.Pingresp()),
    ("e0 00", lambda m: m.Disconnect()),
]  # fmt: skip
CASES: Mapping[str, Sequence[Case]] = {
    "dns": DNS,
    "jupyter": JUPYTER,
    "memcached": MEMCACHED,
    "mqtt": MQTT,
    "resp2": RESP2,
}


def frames_of(octets: Octets) -> list[bytes]:
    if isinstance(octets, bytes):
        return [octets]
    return [bytes.fromhex(frame) for frame in ([octets] if isinstance(octets, str) else octets)]


@pytest.mark.parametrize("name", CASES)
def test_messages_derived_by_hand(tmp_path: Path, name: str) -> None:
    with package(tmp_path, name) as module:
        for octets, build in CASES[name]:
            frames, message = frames_of(octets), build(module)
            assert module.decode(frames) == message
            assert message.encode() == frames


def test_packets_of_mqtt_follow_each_other_on_a_stream(tmp_path: Path) -> None:
    with package(tmp_path, "mqtt") as module:
        octets = b"".join(frames_of(octets)[0] for octets, _ in MQTT)
        decoder = module.StreamDecoder()
        found = [message for at in range(len(octets)) for message in decoder.feed(octets[at : at + 1])]
        assert found == [build(module) for _, build in MQTT]


@pytest.mark.parametrize(
    ("octets", "field", "kind"),
    [
        ("f0 00", "packet_type", "tag"),  # type 15 is reserved
        ("41 02 1234", "packet_type", "tag"),  # the reserved bits of PUBACK are 0
        ("36 05 0003 612f62", "qos", "range"),  # 3 is no QoS
        ("10 0c 0004 4d515454 04 03 003c 0000", "reserved_flag", "constant"),
    ],
)
def test_packets_that_mqtt_does_not_allow(tmp_path: Path, octets: str, field: str, kind: str) -> None:
    with package(tmp_path, "mqtt") as module:
        with pytest.raises(DecodeError) as caught:
            module.decode(frames_of(octets))
        assert (caught.value.field, caught.value.kind) == (field, kind)


@pytest.mark.parametrize("name", ["memcached", "resp2"])
def test_no_message_is_the_beginning_of_another(tmp_path: Path, name: str) -> None:
    with package(tmp_path, name) as module:
        for octets, _ in CASES[name]:
            (frame,) = frames_of(octets)
            for cut in range(len(frame)):
                with pytest.raises(DecodeError):
                    module.decode([frame[:cut]])
            with pytest.raises(DecodeError):
                module.decode([frame + b"x"])


def test_reserved_bits_of_dns_are_ignored(tmp_path: Path) -> None:
    """RFC 1035: "Z: Reserved for future use. Must be zero in all queries and responses"; AD and CD use them now."""
    with package(tmp_path, "dns") as module:
        message = module.decode([bytes.fromhex("000185f30000000000000000")])
        assert message.rcode == 3
        assert message.encode() == [bytes.fromhex("000185830000000000000000")]
        for cut in range(12):
            with pytest.raises(DecodeError):
                module.decode(frames_of("000185f30000000000000000"[: 2 * cut]))


@pytest.mark.parametrize(("field", "value"), [("opcode", 16), ("rcode", -1), ("qr", 2), ("label", b"")])
def test_values_that_do_not_fit_dns(tmp_path: Path, field: str, value: Any) -> None:
    with package(tmp_path, "dns") as module:
        message = DNS[0][1](module)
        if field == "label":
            changed = message.replace(question=(message.question[0].replace(label=(value,)),))
        else:
            changed = message.replace(**{field: value})
        with pytest.raises(EncodeError) as caught:
            changed.encode()
        assert field in str(caught.value)


def test_jupyter_needs_its_delimiter(tmp_path: Path) -> None:
    with package(tmp_path, "jupyter") as module:
        frames, message = frames_of(JUPYTER[0][0]), JUPYTER[0][1](module)
        for wrong in (frames[:1] + frames[2:], frames[:6], []):
            with pytest.raises(DecodeError):
                module.decode(wrong)
        with pytest.raises(EncodeError) as caught:
            message.replace(identity=(b"<IDS|MSG>",)).encode()
        assert caught.value.field == "identity[0]"


@pytest.mark.parametrize("levels", [65, 1000, 200_000])
def test_arrays_are_nested_at_most_64_deep(tmp_path: Path, levels: int) -> None:
    with package(tmp_path, "resp2") as module:
        assert module.decode([b"*1\r\n" * 64 + b":1\r\n"])
        with pytest.raises(DecodeError) as caught:
            module.decode([b"*1\r\n" * (levels + 1) + b":1\r\n"])
        assert caught.value.kind == "limit"
