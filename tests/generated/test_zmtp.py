"""ZMTP: octets that the specification fixes, what libzmq writes on TCP, and a live conversation with it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
import zmq

from specwire.generated.errors import DecodeError, EncodeError
from specwire.generated.messages import Message
from tests.generated.vectors import recorded

WAIT_S = 60.0
"""A bound for a peer on loopback that does not answer at all."""
STREAM = b"".join(vector.frames[0] for vector in recorded("zmtp"))


def test_greeting_is_what_the_specification_says(zmtp: Any) -> None:
    greeting = zmtp.Greeting(mechanism="PLAIN", as_server=1)
    octets = b"\xff" + bytes(8) + b"\x7f" + b"\x03\x01" + b"PLAIN" + bytes(15) + b"\x01" + bytes(31)
    assert greeting.encode() == [octets]
    assert zmtp.decode([octets]) == greeting


@pytest.mark.parametrize(
    ("size", "head"), [(0, b"\x00\x00"), (255, b"\x00\xff"), (256, b"\x02" + bytes(6) + b"\x01\x00")]
)
def test_size_is_short_up_to_255_octets(size: int, head: bytes, zmtp: Any) -> None:
    message = zmtp.MessageLast(message_body=bytes(size))
    assert message.encode() == [head + bytes(size)]
    assert zmtp.decode([head + bytes(size)]) == message


def test_long_size_of_a_short_body_is_read(zmtp: Any) -> None:
    assert zmtp.decode([b"\x02" + bytes(7) + b"\x01x"]) == zmtp.MessageLast(message_body=b"x")


def test_command_without_a_rule_of_its_own(zmtp: Any) -> None:
    octets = b"\x04\x07\x05HELLO!"
    command = zmtp.Command(command_name="HELLO", command_data=b"!")
    assert zmtp.decode([octets]) == command
    assert command.encode() == [octets]


def test_command_must_not_spell_another_message(zmtp: Any) -> None:
    with pytest.raises(EncodeError) as caught:
        zmtp.Command(command_name="PING", command_data=b"").encode()
    assert (caught.value.field, caught.value.kind) == ("command_name", "tag")


def test_size_covers_the_rest(zmtp: Any) -> None:
    for octets in (b"\x04\x06\x05READY!", b"\x04\x08\x05READY!"):
        with pytest.raises(DecodeError) as caught:
            zmtp.decode([octets])
        error = caught.value
        assert (error.field, error.offset, error.kind) == ("command_size", 1, "length")


def test_two_names_of_one_property_are_kept(zmtp: Any) -> None:
    octets = b"\x04\x14\x05READY" + b"\x01A\x00\x00\x00\x01x" * 2
    message = zmtp.decode([octets])
    assert message == zmtp.Ready(metadata=(("A", b"x"), ("A", b"x")))


@pytest.mark.parametrize("step", [1, 2, 7, 64, 1000])
def test_recorded_stream_gives_the_same_messages_however_it_is_cut(step: int, zmtp: Any) -> None:
    decoder = zmtp.StreamDecoder()
    found: list[Message] = []
    for at in range(0, len(STREAM), step):
        found += decoder.feed(STREAM[at : at + step])
    decoder.eof()
    assert found == [zmtp.decode(vector.frames) for vector in recorded("zmtp")]


def test_size_beyond_the_limit_is_refused_before_its_octets_come(zmtp: Any) -> None:
    decoder = zmtp.StreamDecoder(max_octets=1000)
    with pytest.raises(DecodeError) as caught:
        decoder.feed(b"\x02" + b"\xff" * 8)
    assert caught.value.kind == "limit"


@pytest.fixture
def router() -> Iterator[tuple[zmq.Socket[bytes], int]]:
    context = zmq.Context()
    peer = context.socket(zmq.ROUTER)
    peer.linger = 0
    peer.rcvtimeo = peer.sndtimeo = int(WAIT_S * 1000)
    yield peer, peer.bind_to_random_port("tcp://127.0.0.1")
    peer.close()
    context.term()


def receive(connection: socket.socket, decoder: Any, count: int) -> list[Message]:
    found: list[Message] = []
    while len(found) < count:
        octets = connection.recv(65536)
        assert octets, "the peer closed"
        found += decoder.feed(octets)
    return found


@pytest.mark.peers
def test_libzmq_talks_to_us(router: tuple[zmq.Socket[bytes], int], zmtp: Any) -> None:
    """Greeting, handshake, a multipart message there and back, a PING: all octets of ours are from the codec."""
    peer, port = router
    decoder = zmtp.StreamDecoder()
    with closing(socket.create_connection(("127.0.0.1", port), timeout=WAIT_S)) as connection:
        connection.sendall(zmtp.frame(zmtp.Greeting()))
        connection.sendall(zmtp.frame(zmtp.Ready(metadata=(("Socket-Type", b"DEALER"), ("Identity", b"us")))))
        greeting, ready = receive(connection, decoder, 2)
        assert greeting == zmtp.Greeting(mechanism="NULL", as_server=0)
        assert isinstance(ready, zmtp.Ready) and ("Socket-Type", b"ROUTER") in ready.metadata
        for unit in (zmtp.MessageMore(message_body=b"a" * 300), zmtp.MessageLast(message_body=b"")):
            connection.sendall(zmtp.frame(unit))
        assert peer.recv_multipart() == [b"us", b"a" * 300, b""]
        peer.send_multipart([b"us", b"", b"b" * 256])
        assert receive(connection, decoder, 2) == [
            zmtp.MessageMore(message_body=b""),
            zmtp.MessageLast(message_body=b"b" * 256),
        ]
        connection.sendall(zmtp.frame(zmtp.Ping(ping_ttl=10, ping_context=b"now")))
        assert receive(connection, decoder, 1) == [zmtp.Pong(ping_context=b"now")]
