"""Generated packages of foreign protocols against real implementations, on sockets of the test's own folder."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.generator.test_foreign import package

MAX_ANSWER = 1 << 20
SECONDS = 20


@contextmanager
def server(folder: Path, *command: str) -> Iterator[socket.socket]:
    """Run a server that listens on the Unix socket ``s`` in `folder`; yield a connection to it."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with connected(folder / "s", process) as connection:
            yield connection
    finally:
        process.terminate()
        process.wait(SECONDS)


def connected(path: Path, process: subprocess.Popen[bytes]) -> socket.socket:
    """Connect to a socket as soon as the process listens on it."""
    end = time.monotonic() + SECONDS
    while True:
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(SECONDS)
        try:
            connection.connect(str(path))
        except OSError:
            connection.close()
            assert process.poll() is None, f"it ended with status {process.returncode}"
            assert time.monotonic() < end, "it does not listen"
            time.sleep(0.02)
        else:
            return connection


def ask(connection: socket.socket, module: ModuleType, request: bytes) -> Any:
    """Send a request, and return the message that comes back."""
    connection.sendall(request)
    stream = module.StreamDecoder(max_octets=MAX_ANSWER)
    while True:
        octets = connection.recv(4096)
        assert octets, "the server closed the connection"
        if found := stream.feed(octets):
            (message,) = found
            return message


def test_redis(tmp_path: Path) -> None:
    command = ("redis-server", "--port", "0", "--unixsocket", "s", "--save", "", "--appendonly", "no")
    with package(tmp_path / "package", "resp2") as module, server(tmp_path, *command) as connection:

        def call(*words: bytes) -> Any:
            request = module.Array(reply=tuple(module.BulkRecord(data=word) for word in words))
            (frame,) = request.encode()
            return ask(connection, module, frame)

        assert call(b"PING") == module.Simple(line="PONG")
        assert call(b"SET", b"key", b"a\r\nb\x00\xff") == module.Simple(line="OK")
        assert call(b"GET", b"key") == module.Bulk(data=b"a\r\nb\x00\xff")
        assert call(b"GET", b"absent") == module.NullBulk()
        assert call(b"INCRBY", b"n", b"-7") == module.Integer(number=-7)
        assert isinstance(call(b"INCR", b"key"), module.Error)
        assert call(b"RPUSH", b"list", b"a", b"b") == module.Integer(number=2)
        assert call(b"MGET", b"key", b"absent") == module.Array(
            reply=(module.BulkRecord(data=b"a\r\nb\x00\xff"), module.NullBulkRecord())
        )
        nested = call(b"EVAL", b"return {1, {2, {'x', false}}}", b"0")
        inner = module.ArrayRecord(reply=(module.BulkRecord(data=b"x"), module.NullBulkRecord()))
        two = module.ArrayRecord(reply=(module.IntegerRecord(number=2), inner))
        assert nested == module.Array(reply=(module.IntegerRecord(number=1), two))
        assert call(b"BLPOP", b"nothing", b"0.01") == module.NullArray()
        commands = call(b"COMMAND")
        assert len(commands.reply) > 100
        assert len(commands.encode()[0]) > 10_000


def test_memcached(tmp_path: Path) -> None:
    with (
        package(tmp_path / "package", "memcached") as module,
        server(tmp_path, "memcached", "-u", "root", "-B", "binary", "-s", "s") as connection,
    ):

        def call(opcode: int, **fields: Any) -> Any:
            empty = {"extras": b"", "key": b"", "value": b""}
            (frame,) = module.Request(opcode=opcode, opaque=77, **(empty | fields)).encode()
            return ask(connection, module, frame)

        stored = call(
            module.Opcode.SET, extras=bytes.fromhex("deadbeef00000000"), key=b"Hello", value=b"World"
        )
        assert (stored.opcode, stored.status, stored.opaque) == (
            module.Opcode.SET,
            module.Status.NO_ERROR,
            77,
        )
        found = call(module.Opcode.GET, key=b"Hello")
        assert (found.extras, found.key, found.value) == (bytes.fromhex("deadbeef"), b"", b"World")
        assert found.cas == stored.cas > 0
        assert call(module.Opcode.GET, key=b"absent").status == module.Status.KEY_NOT_FOUND
        assert (
            call(module.Opcode.ADD, extras=bytes(8), key=b"Hello", value=b"").status
            == module.Status.KEY_EXISTS
        )
        counted = call(
            module.Opcode.INCREMENT, extras=bytes(7) + b"\x01" + bytes(7) + b"\x05" + bytes(4), key=b"n"
        )
        assert int.from_bytes(counted.value) == 5
        assert call(module.Opcode.VERSION).value.startswith(b"1.")


def test_dnslib(tmp_path: Path) -> None:
    dnslib = pytest.importorskip("dnslib", reason="dnslib is not installed")
    with package(tmp_path, "dns") as module:
        query = dnslib.DNSRecord.question("www.example.com", "MX")
        message = module.decode([query.pack()])
        assert message.id_ == query.header.id
        assert [bool(query.header.rd), query.header.opcode] == [message.rd, message.opcode]
        assert message.question == (module.Question(label=(b"www", b"example", b"com"), qtype=15, qclass=1),)
        reply = query.reply()
        reply.header.rcode = dnslib.RCODE.NXDOMAIN
        reply.add_answer(*dnslib.RR.fromZone("www.example.com 60 MX 10 mail.example.com"))
        answer = module.decode([reply.pack()])
        assert (answer.qr, answer.aa, answer.ra, answer.rcode, answer.ancount) == (True, True, True, 3, 1)
        parsed = dnslib.DNSRecord.parse(answer.encode()[0])
        assert str(parsed.header) == str(reply.header)
        assert str(parsed.q) == str(query.q)
        built = module.Message_(
            id_=7, qr=False, opcode=module.Opcode.STATUS, aa=False, tc=True, rd=False, ra=False, rcode=0, ancount=0,
            nscount=0, arcount=0,
            question=(
                module.Question(label=(b"a",), qtype=1, qclass=1), module.Question(label=(), qtype=2, qclass=1)
            ),
            records=b"",
        )  # fmt: skip
        parsed = dnslib.DNSRecord.parse(built.encode()[0])
        assert (parsed.header.id, parsed.header.opcode, parsed.header.tc, parsed.header.q) == (7, 2, 1, 2)
        assert [str(question.qname) for question in parsed.questions] == ["a.", "."]


def test_jupyter_client(tmp_path: Path) -> None:
    sessions = pytest.importorskip("jupyter_client.session", reason="jupyter_client is not installed")
    session = sessions.Session(key=b"secret")
    with package(tmp_path, "jupyter") as module:
        sent = session.msg("execute_request", {"code": "1 + 1", "silent": False})
        frames = session.serialize(sent, ident=[b"router", b"client"])
        message = module.decode([*frames, b"\x00buffer"])
        assert message.identity == (b"router", b"client")
        assert message.buffer == (b"\x00buffer",)
        assert len(message.signature) == 64
        assert session.unpack(message.content.encode()) == sent["content"]
        identities, parts = session.feed_identities(message.encode())
        received = session.deserialize(parts)
        assert identities == [b"router", b"client"]
        assert received["header"]["msg_id"] == sent["header"]["msg_id"]
        assert received["content"] == sent["content"]
