"""The local connector on real sockets, against octets that were recorded or written by hand."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specwire.generated import flux
from specwire.generated.flux import AnyMessage, Event, Request, Response
from specwire.runtime.flux.connector import HOLD_BACK_OCTETS, MAX_UNREAD_OCTETS, READ_OCTETS, Connector
from specwire.runtime.flux.local_socket import LocalSocket
from specwire.runtime.flux.wire import LETTER
from specwire.runtime.transport.errors import TransportError
from tests.examples import examples
from tests.generated.vectors import entries, frames_of
from tests.runtime.flux.scripted import NATIVE, SPECIFIED, framed, local

TIMEOUT_S = 60.0
EPERM = 1


class Hub:
    """A connector that writes down what it is told; `answer` may answer at once."""

    def __init__(self, path: Path, errnum: int = 0, max_unread_octets: int = MAX_UNREAD_OCTETS) -> None:
        self.heard: asyncio.Queue[tuple[str, AnyMessage]] = asyncio.Queue()
        self.gone: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
        self.accepted: list[tuple[str, int, int]] = []
        self.errnum = errnum
        self._kept: list[asyncio.StreamWriter] = []
        self.answer: Callable[[str, AnyMessage], None] = lambda client, message: None
        self.connector = Connector(
            str(path),
            on_accept=self._on_accept,
            on_message=self._on_message,
            on_gone=lambda client, reason: self.gone.put_nowait((client, reason)),
            max_unread_octets=max_unread_octets,
        )

    def _on_accept(self, client: str, uid: int, pid: int) -> int:
        self.accepted.append((client, uid, pid))
        return self.errnum

    def _on_message(self, client: str, message: AnyMessage) -> None:
        self.heard.put_nowait((client, message))
        self.answer(client, message)

    async def join(self, *, limit: int = 2**16) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect, and take the authorisation octet."""
        reader, writer = await asyncio.open_unix_connection(self.connector.path, limit=limit)
        assert await reader.readexactly(1) == b"\0"
        self._kept.append(writer)  # a writer that nobody has closes its connection
        return reader, writer


@asynccontextmanager
async def hub(
    folder: Path, errnum: int = 0, max_unread_octets: int = MAX_UNREAD_OCTETS
) -> AsyncIterator[Hub]:
    made = Hub(folder / "local-0", errnum, max_unread_octets)
    async with asyncio.timeout(TIMEOUT_S):
        await made.connector.start()
        try:
            yield made
        finally:
            await made.connector.stop()


def request(matchtag: int, pad: int = 0) -> bytes:
    """A ping, by hand."""
    proto = bytes.fromhex("8e01010bffffffff0000000000000000") + matchtag.to_bytes(4, "big")
    return framed((b"", b"broker.ping", b"x" * pad + b"\0", proto))


def test_client_is_known_by_a_fresh_uuid_its_uid_and_pid(tmp_path: Path) -> None:
    async def story() -> None:
        async with hub(tmp_path) as h:
            await h.join()
            await h.join()
            (one, uid, pid), (two, _, _) = h.accepted
            assert one != two
            assert len(one) == 36
            assert str(UUID(one)) == one
            assert (uid, pid) == (os.getuid(), os.getpid())
            assert h.connector.counts.accepted == 2

    asyncio.run(story())


def test_denied_guest_gets_the_errno_and_is_closed(tmp_path: Path) -> None:
    """A denied guest gets 1, EPERM, and the connection ends; nobody is told of a client that was not let in."""

    async def story() -> None:
        async with hub(tmp_path, errnum=EPERM) as h:
            reader, writer = await asyncio.open_unix_connection(h.connector.path)
            assert await reader.read() == b"\x01"
            writer.close()
            # One that does not wait to be let in gets it too, before it hears that its request was not read.
            reader, writer = await asyncio.open_unix_connection(h.connector.path)
            writer.write(request(1))
            assert await reader.readexactly(1) == b"\x01"
            h.errnum = 0
            _, writer = await h.join()
            writer.write(request(2))
            client, message = await h.heard.get()
            assert client == h.accepted[2][0]
            assert isinstance(message, Request)
            assert message.matchtag == 2
            assert h.gone.empty()
            assert (h.connector.counts.denied, h.connector.clients) == (2, (client,))

    asyncio.run(story())


def test_fault_in_the_judgement_lets_nobody_in(tmp_path: Path) -> None:
    async def story() -> None:
        async with hub(tmp_path) as h:
            faults: list[object] = []
            asyncio.get_running_loop().set_exception_handler(lambda loop, context: faults.append(context))

            def judge(client: str, uid: int, pid: int) -> int:
                raise ZeroDivisionError("ours")

            h.connector.on_accept = judge
            reader, writer = await asyncio.open_unix_connection(h.connector.path)
            writer.write(request(1))
            with suppress(ConnectionResetError):
                assert await reader.read() == b""
            assert len(faults) == 1
            assert h.heard.empty()
            assert h.connector.clients == ()

    asyncio.run(story())


@pytest.mark.parametrize("magic", [NATIVE, SPECIFIED], ids=["native", "specified"])
def test_recorded_requests_are_read_in_either_byte_order_of_the_magic(tmp_path: Path, magic: bytes) -> None:
    recorded = [
        entry
        for entry in entries("flux-core-0.88.json")
        if entry["direction"] == "client->broker" and entry["framed_hex"]
    ]
    assert len(recorded) > 30

    async def story() -> None:
        async with hub(tmp_path) as h:
            _, writer = await h.join()
            for entry in recorded:
                octets = bytes.fromhex(entry["framed_hex"])
                assert octets[:4] == NATIVE
                writer.write(magic + octets[4:])
            for entry in recorded:
                _, message = await h.heard.get()
                assert message == flux.decode(list(frames_of(entry)))

    asyncio.run(story())


def test_responses_and_events_leave_as_they_were_recorded(tmp_path: Path) -> None:
    """The same octets, native magic, delimiter and all."""
    recorded = [
        entry
        for entry in entries("flux-core-0.88.json")
        if entry["direction"] == "broker->client" and entry["framed_hex"] and "type" in entry["fields"]
    ]
    assert len(recorded) > 30

    async def story() -> None:
        async with hub(tmp_path) as h:
            reader, _ = await h.join()
            (client,) = h.connector.clients
            for entry in recorded:
                h.connector.send(client, flux.decode(list(frames_of(entry))))
            for entry in recorded:
                octets = bytes.fromhex(entry["framed_hex"])
                assert await reader.readexactly(len(octets)) == octets

    asyncio.run(story())


def test_message_may_be_cut_anywhere(tmp_path: Path) -> None:
    """Each half is written when the other has been read: reads resume over partial input at every octet."""
    octets = bytes.fromhex(local("longpart.payload255.request")["framed_hex"])
    expected = flux.decode(list(frames_of(local("longpart.payload255.request"))))

    async def story() -> None:
        async with hub(tmp_path) as h:
            _, writer = await h.join()
            mark = request(7)
            for cut in range(1, len(octets)):
                # The first half arrives with the message before it, so it has been read when that was heard.
                writer.write(mark + octets[:cut])
                assert (await h.heard.get())[1] == flux.decode(
                    [b"", b"broker.ping", b"\0", bytes.fromhex("8e01010bffffffff000000000000000000000007")]
                )
                writer.write(octets[cut:])
                assert (await h.heard.get())[1] == expected

    asyncio.run(story())


@pytest.mark.parametrize(("size", "parts"), [(1024, 1024), (4096, 256), (16384, 64), (1048586, 1)])
def test_long_parts_pass_in_both_directions(tmp_path: Path, size: int, parts: int) -> None:
    """The sizes that flux-core tests itself with, as routes and a payload."""
    routes = tuple(f"{n:0{size}d}" for n in range(parts - 1))
    message = Request(routes, "a.b", b"p" * size, matchtag=1)
    frames = tuple(message.encode())
    assert sum(map(len, frames)) > parts * size

    async def story() -> None:
        async with hub(tmp_path) as h:
            h.answer = h.connector.send
            reader, writer = await h.join(limit=2**22)
            writer.write(framed(frames))
            assert (await h.heard.get())[1] == message
            assert await reader.readexactly(len(framed(frames))) == framed(frames)

    asyncio.run(story())


def test_messages_leave_in_the_wire_format_that_was_chosen(tmp_path: Path) -> None:
    """By the letter, a topic ends with NUL, an event has no delimiter, and the magic has its order; both are read."""

    async def story() -> None:
        async with asyncio.timeout(TIMEOUT_S):
            heard: asyncio.Queue[tuple[str, AnyMessage]] = asyncio.Queue()
            connector = Connector(
                os.fspath(tmp_path / "local-0"),
                on_accept=lambda *_: 0,
                on_message=lambda *of: heard.put_nowait(of),
                on_gone=lambda *_: None,
                wire=LETTER,
            )
            await connector.start()
            reader, writer = await asyncio.open_unix_connection(connector.path)
            assert await reader.readexactly(1) == b"\0"
            proto = bytes.fromhex("8e010101ffffffff00000000ffffffff00000001")
            for topic in (b"a.b", b"a.b\0"):
                writer.write(framed((topic, proto)))
                client, message = await heard.get()
                assert message == Request(None, "a.b", matchtag=1)
            connector.send(client, Event(topic="a.c", sequence=1))
            framed_natively = framed((b"a.c\0", bytes.fromhex("8e010401ffffffff000000000000000100000000")))
            expected = b"\xff\xee\x00\x12" + framed_natively[4:]
            assert await reader.readexactly(len(expected)) == expected
            writer.close()
            await connector.stop()

    asyncio.run(story())


def test_part_may_have_its_size_in_long_form_though_it_is_short(tmp_path: Path) -> None:
    async def story() -> None:
        async with hub(tmp_path) as h:
            _, writer = await h.join()
            proto = bytes.fromhex("8e010101ffffffff00000000ffffffff00000001")
            body = b"\xff\0\0\0\3a.b" + b"\x14" + proto
            writer.write(NATIVE + len(body).to_bytes(4, "big") + body)
            assert (await h.heard.get())[1] == Request(None, "a.b", matchtag=1)

    asyncio.run(story())


HOSTILE = {
    "no magic": b"GET / HTTP/1.1\r\n",
    "half a magic that is wrong": b"\x12\0\xee\0",
    "an empty body": NATIVE + bytes(4),
    "a length beyond the bound": NATIVE + b"\x7f\xff\xff\xff",
    "a part that runs over": NATIVE + b"\0\0\0\3\x20ab",
    "a long size cut short": NATIVE + b"\0\0\0\3\xff\0\0",
    "a long size that runs over": NATIVE + b"\0\0\0\5\xff\xff\xff\xff\xff",
    "one empty part": NATIVE + b"\0\0\0\1\0",
    "another protocol version": framed((bytes.fromhex("8e020100ffffffff00000000ffffffff00000001"),)),
    "an unknown type": framed((bytes.fromhex("8e010300ffffffff00000000ffffffff00000001"),)),
    "a topic that is missing": framed((bytes.fromhex("8e010101ffffffff00000000ffffffff00000001"),)),
    "a route without delimiter": framed((b"a", bytes.fromhex("8e010108ffffffff00000000ffffffff00000001"))),
}


@pytest.mark.parametrize("octets", HOSTILE.values(), ids=HOSTILE)
def test_octets_that_are_no_message_end_their_connection_and_no_other(tmp_path: Path, octets: bytes) -> None:
    """What was complete before them is still heard and answered."""

    async def story() -> None:
        async with hub(tmp_path) as h:
            h.answer = lambda client, message: h.connector.send(client, Response(matchtag=1, rolemask=1))
            other_reader, other = await h.join()
            other.write(request(1)[:9])
            reader, writer = await h.join()
            writer.write(request(5) + octets)
            response = framed(tuple(Response(matchtag=1, rolemask=1).encode()))
            assert await reader.read() == response
            client, reason = await h.gone.get()
            assert client == h.accepted[1][0]
            assert reason.startswith("malformed: ")
            assert h.connector.counts.malformed == 1
            other.write(request(1)[9:])
            assert await other_reader.readexactly(len(response)) == response

    asyncio.run(story())


READ_BY_C_ALONE = {"extra frames before proto", "event w/ route flag"}
"""The C decoder overlooks frames and octets that the grammar has no place for; ours does not."""


def test_malformed_vectors_end_the_connection(tmp_path: Path) -> None:
    """Each body that the C decoder refused; those that it read are read."""

    async def story() -> None:
        async with hub(tmp_path) as h:
            read = 0
            for entry in entries("flux-malformed.json"):
                body = bytes.fromhex(entry["body_hex"])
                reader, writer = await h.join()
                writer.write(NATIVE + len(body).to_bytes(4, "big") + body)
                if entry["errno"] or entry["name"] in READ_BY_C_ALONE:
                    assert await reader.read() == b"", entry["name"]
                    assert (await h.gone.get())[1].startswith("malformed: ")
                else:
                    read += 1
                    assert (await h.heard.get())[1], entry["name"]
            assert len(h.connector.clients) == read > 3

    asyncio.run(story())


@settings(max_examples=examples(30))
@given(st.lists(st.binary(max_size=60) | st.just(request(1)) | st.just(NATIVE), max_size=6))
def test_any_octets_leave_the_connector_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes]
) -> None:
    """A hostile client is served or disconnected; another is served in any case."""
    folder = tmp_path_factory.mktemp("hostile")

    async def story() -> None:
        async with hub(folder) as h:
            _, other = await h.join()
            reader, writer = await h.join()
            for piece in pieces:
                writer.write(piece)
            writer.write_eof()
            with suppress(ConnectionResetError):
                await reader.read()
            client, _ = await h.gone.get()
            assert client == h.accepted[1][0]
            other.write(request(9))
            while (await h.heard.get())[0] != h.accepted[0][0]:
                pass

    asyncio.run(story())


def test_client_that_leaves_in_the_middle_of_a_message_is_malformed(tmp_path: Path) -> None:
    async def story() -> None:
        async with hub(tmp_path) as h:
            _, writer = await h.join()
            writer.write(request(1)[:-1])
            writer.close()
            assert "malformed" in (await h.gone.get())[1]
            _, writer = await h.join()
            writer.close()
            assert (await h.gone.get())[1] == "disconnected"
            assert h.connector.counts.malformed == 1

    asyncio.run(story())


def test_client_that_ends_without_reading_everything_just_ends(tmp_path: Path) -> None:
    """The kernel calls it a reset, but it is how commands end that have seen enough."""

    async def story() -> None:
        async with hub(tmp_path) as h:
            with socket.socket(socket.AF_UNIX) as client:
                client.setblocking(False)
                await asyncio.get_running_loop().sock_connect(client, h.connector.path)
                client.send(request(1))
                await h.heard.get()  # so that the octet of the authorisation is there, and nobody reads it
            assert (await h.gone.get())[1] == "disconnected"

    asyncio.run(story())


def test_slow_subscriber_is_disconnected_and_stalls_nobody(tmp_path: Path) -> None:
    """Over the bound it gets nothing more; another that reads has every event, in order."""
    event = Event(topic="a", payload=bytes(1 << 16), sequence=1)
    bound = 4 << 20

    async def story() -> None:
        async with hub(tmp_path, max_unread_octets=bound) as h:
            slow_reader, _ = await h.join()
            slow_reader._transport.pause_reading()  # type: ignore[attr-defined]
            reader, _ = await h.join()
            slow, quick = (accepted[0] for accepted in h.accepted)
            octets = framed(tuple(event.encode()))
            sent = 0
            while h.gone.empty():
                h.connector.send(slow, event)
                h.connector.send(quick, event)
                assert await reader.readexactly(len(octets)) == octets
                sent += 1
                assert sent * len(octets) < bound + (16 << 20), (
                    "it takes more than the bound and the socket's"
                )
            client, reason = await h.gone.get()
            assert client == slow
            assert reason.startswith("slow subscriber: ")
            assert sent * len(octets) > bound
            assert (h.connector.counts.slow, h.connector.clients) == (1, (quick,))
            h.connector.send(slow, event)
            assert h.gone.empty(), "it is gone once"

    asyncio.run(story())


def test_client_that_does_not_read_its_answers_is_not_read_from(tmp_path: Path) -> None:
    """It may ask for more than any bound at once: its requests wait, and every one is answered when it reads."""
    big = bytes(1 << 16)
    asked = 1000

    async def story() -> None:
        async with hub(tmp_path, max_unread_octets=4 << 20) as h:
            h.answer = lambda client, message: h.connector.send(
                client,
                Response(topic="a", payload=big, rolemask=1, matchtag=message.matchtag),  # type: ignore[union-attr]
            )
            reader, writer = await h.join(limit=2**21)
            reader._transport.pause_reading()  # type: ignore[attr-defined]
            writer.write(b"".join(request(n) for n in range(asked)))
            await h.heard.get()
            _, other = await h.join()
            other.write(request(1))
            while (await h.heard.get())[0] != h.accepted[1][0]:
                pass
            answered = h.connector.counts.received
            assert answered * len(big) < HOLD_BACK_OCTETS * 3 + READ_OCTETS
            reader._transport.resume_reading()  # type: ignore[attr-defined]
            for n in range(asked):
                octets = framed(tuple(Response(topic="a", payload=big, rolemask=1, matchtag=n).encode()))
                assert await reader.readexactly(len(octets)) == octets
            assert h.gone.empty()

    asyncio.run(story())


@pytest.mark.parametrize("within", [True, False], ids=["while one is taken", "from outside"])
def test_client_that_is_held_back_is_heard_later_and_in_order(tmp_path: Path, within: bool) -> None:
    """What had come already waits too; others are heard meanwhile."""

    async def story() -> None:
        async with hub(tmp_path) as h:
            _, writer = await h.join()
            _, other = await h.join()
            held, free = (accepted[0] for accepted in h.accepted)
            if within:
                h.answer = lambda client, message: h.connector.hold(client) if client == held else None
            else:
                h.connector.hold(held)
            writer.write(b"".join(request(n) for n in range(2000)))
            other.write(request(7))
            heard = [await h.heard.get() for _ in range(1 + within)]
            assert {client for client, _ in heard} == ({held, free} if within else {free})
            other.write(request(8))
            assert (await h.heard.get())[0] == free
            assert h.heard.empty()
            h.answer = lambda client, message: None
            h.connector.resume(held)
            tags = [(await h.heard.get())[1].matchtag for _ in range(2000 - within)]  # type: ignore[union-attr]
            assert tags == list(range(int(within), 2000))
            h.connector.hold("nobody")
            h.connector.resume("nobody")

    asyncio.run(story())


def test_answers_to_requests_that_came_together_leave_in_order(tmp_path: Path) -> None:
    async def story() -> None:
        async with hub(tmp_path) as h:
            h.answer = lambda client, message: h.connector.send(
                client,
                Response(matchtag=message.matchtag, rolemask=1),  # type: ignore[union-attr]
            )
            reader, writer = await h.join()
            writer.write(b"".join(request(n) for n in range(5000)))
            size = len(framed(tuple(Response(matchtag=0, rolemask=1).encode())))
            tags = [int.from_bytes((await reader.readexactly(size))[-4:], "big") for _ in range(5000)]
            assert tags == list(range(5000))
            assert (h.connector.counts.received, h.connector.counts.sent) == (5000, 5000)

    asyncio.run(story())


@pytest.mark.parametrize("octets", [0, 3 << 20], ids=["small", "more than the socket takes"])
def test_closed_client_still_gets_what_was_sent_before(tmp_path: Path, octets: int) -> None:
    async def story() -> None:
        async with hub(tmp_path) as h:
            reader, writer = await h.join()
            (client,) = h.connector.clients
            large, small = Event(topic="a", payload=bytes(octets)), Event(topic="b")
            for event in (small, large, small):
                h.connector.send(client, event)
            h.connector.close(client, "enough")
            h.connector.send(client, small)
            expected = b"".join(framed(tuple(event.encode())) for event in (small, large, small))
            assert await reader.read() == expected
            assert await h.gone.get() == (client, "enough")
            writer.close()
            assert h.connector.clients == ()

    asyncio.run(story())


def test_fault_of_ours_ends_one_connection_and_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        async with hub(tmp_path) as h:
            asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
            _, other = await h.join()
            reader, writer = await h.join()
            mark = h.accepted[1][0]

            def fail(client: str, message: AnyMessage) -> None:
                if client == mark:
                    raise ZeroDivisionError("ours")

            h.answer = fail
            writer.write(request(1))
            assert await reader.read() == b""
            assert (await h.gone.get())[0] == mark
            await h.heard.get()
            other.write(request(1))
            await h.heard.get()

    asyncio.run(story())
    assert "could not be handled" in caplog.text


def test_stop_ends_every_connection_and_takes_the_socket_away(tmp_path: Path) -> None:
    async def story() -> None:
        async with asyncio.timeout(TIMEOUT_S):
            h = Hub(tmp_path / "local-0")
            await h.connector.start()
            reader, _ = await h.join()
            await h.connector.stop("enough")
            assert await reader.read() == b""
            assert (await h.gone.get())[1] == "enough"
            assert not os.path.exists(h.connector.path)

    asyncio.run(story())


def test_folder_is_the_fence_and_the_socket_is_open_to_whoever_passes_it(tmp_path: Path) -> None:
    path = tmp_path / "run" / "local-0"
    listening = LocalSocket(str(path))
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o666
    listening.close()
    listening.close()
    assert not path.exists()


def test_stale_socket_is_replaced_and_a_live_one_is_not(tmp_path: Path) -> None:
    path = tmp_path / "local-0"
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(path))
    live = LocalSocket(str(path))
    with pytest.raises(TransportError, match=r"cannot listen on local://.*: another broker listens there"):
        LocalSocket(str(path))
    path.unlink()
    other = LocalSocket(str(path))
    live.close()
    assert path.exists(), "it belongs to another by now"
    other.close()


def test_what_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "precious"
    path.write_text("data")
    with pytest.raises(TransportError, match="something else than a socket"):
        LocalSocket(str(path))
    assert path.read_text() == "data"


@pytest.mark.parametrize(
    ("path", "reason"),
    [("/tmp/" + "x" * 103, "a path of 108 octets, and a UNIX socket's has at most 107"), ("/a\0b", "NUL")],
)
def test_path_that_no_socket_can_have_is_refused_with_the_reason(path: str, reason: str) -> None:
    with pytest.raises(TransportError, match=reason):
        LocalSocket(path)


def test_folder_that_cannot_be_made_is_a_transport_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TransportError, match="cannot listen on local://"):
        LocalSocket(str(tmp_path / "file" / "local-0"))
