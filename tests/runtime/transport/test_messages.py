"""Whole messages in and out of sockets: both builds alike, whatever is sent, and whatever is wrong."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from errno import EHOSTUNREACH, EINVAL, ENOTSOCK
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import zmq

from specwire.runtime.transport import messages
from specwire.runtime.transport.messages import BUILD, COPY_LIMIT_OCTETS
from tests.house.repository import has_compiler
from tests.runtime.transport.socket_pairs import (
    BUILDS,
    DEADLINE_S,
    LARGE,
    MAX_FRAMES,
    NEEDS_NATIVE,
    TRANSPORTS,
    Context,
    Pair,
    gone,
    until,
)


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("build", BUILDS)
def test_messages_arrive_as_they_were_sent(context: Context, build: str, transport: str) -> None:
    """Whatever the number of frames, their sizes and their kinds; small ones as octets, large ones as views."""
    pair = Pair(context, build, transport)
    sizes = [
        0,
        1,
        29,
        33,
        34,
        255,
        256,
        8191,
        8192,
        COPY_LIMIT_OCTETS - 1,
        COPY_LIMIT_OCTETS,
        3 * COPY_LIMIT_OCTETS,
    ]
    said: list[list[bytes]] = [[b""], [b"", b""], [b"a", b"", b"c"], [LARGE, LARGE], [LARGE, b"end"]]
    said += [[b"size", os.urandom(size)] for size in sizes]
    said += [[bytes([number]) for number in range(MAX_FRAMES - 1)]]
    for number, frames in enumerate(said):
        kind: Callable[[bytes], Any] = (bytes, memoryview, bytearray)[number % 3]
        given = [kind(frame) for frame in frames]
        assert pair.client.send(given if number % 2 else tuple(given))
        got = until(pair.server.receive)
        assert [bytes(frame) for frame in got] == [b"peer", *frames]
        for frame in got:
            assert isinstance(frame, bytes if len(frame) < COPY_LIMIT_OCTETS else memoryview)
            assert not isinstance(frame, memoryview) or (frame.readonly and frame.format == "B")
        assert pair.server.send([b"peer", *frames])
        assert [bytes(frame) for frame in until(pair.client.receive)] == frames
    assert pair.server.receive() == pair.client.receive() == []
    assert pair.server.user == ""


@pytest.mark.parametrize("build", BUILDS)
def test_large_frames_are_copied_where_that_is_asked_for(context: Context, build: str) -> None:
    pair = Pair(context, build, copied=True)
    pair.client.send([LARGE, b"x"])
    got = until(pair.server.receive)
    assert got == [b"peer", LARGE, b"x"] and all(type(frame) is bytes for frame in got)


@pytest.mark.parametrize("build", BUILDS)
def test_what_has_passed_is_counted(context: Context, build: str) -> None:
    """Without routing ids; with frames that are not kept, and without messages that were not sent."""
    pair = Pair(context, build)
    frames = [b"abc", b"", LARGE]
    pair.client.send(frames)
    pair.client.send([b"x"] * 3000)
    for _ in range(2):
        until(pair.server.receive)
    pair.server.send([b"peer", *frames])
    assert pair.server.send_all([[b"peer", b"1"], [b"peer", b"23"], [b"nobody", b"45"]], 0) == 2
    with pytest.raises(zmq.ZMQError):
        pair.server.send([b"nobody", b"x"])
    for _ in range(3):
        until(pair.client.receive)
    octets = 3 + len(LARGE)
    for side, (came, left) in {
        pair.at_server: ((2, octets + 3000), (3, octets + 3)),
        pair.at_client: ((3, octets + 3), (2, octets + 3000)),
    }.items():
        assert (side.messages_in, side.octets_in) == came
        assert (side.messages_out, side.octets_out) == left


@pytest.mark.parametrize("build", BUILDS)
def test_several_are_sent_up_to_the_first_of_which_send_decides(context: Context, build: str) -> None:
    """What has a large frame, whose peer is not known, and for which there is no room."""
    pair = Pair(context, build, high_water=2)
    pair.client.send([b"hello"])
    until(pair.server.receive)
    messages: list[Any] = [[b"peer", b"0"], [b"nobody", b"1"], [b"peer", LARGE], [b"peer", b"3"]]
    assert [pair.server.send_all(messages, at) for at in (0, 1, 2, 4)] == [1, 1, 2, 4]
    assert until(pair.client.receive) == [b"0"]
    assert pair.client.receive() == []
    more = [[b"peer", b"%d" % number] for number in range(100)]
    sent = pair.server.send_all(more, 90)
    assert 90 < sent < 100 and not pair.server.send(more[sent])
    assert [until(pair.client.receive) for _ in range(90, sent)] == [frames[1:] for frames in more[90:sent]]
    pair.router.close(linger=0)
    assert pair.server.send_all(more, 7) == 7


@pytest.mark.parametrize("build", BUILDS)
def test_what_has_come_is_received_together(context: Context, build: str) -> None:
    """In its order, up to as many as are asked for; what is in the list before stays there."""
    pair = Pair(context, build)
    said = [[b"%d" % number, b"x" * number] for number in range(5)]
    for frames in said:
        pair.client.send(frames)
    until(pair.server.readable)
    got: list[tuple[str, list[bytes]]] = []
    until(lambda: pair.server.receive_all(got, 3, 1 << 20) or len(got) == 3)
    assert got == [("", [b"peer", *frames]) for frames in said[:3]]
    until(lambda: pair.server.receive_all(got, 100, 1 << 20) or len(got) == 5)
    assert got == [("", [b"peer", *frames]) for frames in said]
    pair.server.receive_all(got, 100, 1 << 20)
    assert len(got) == 5
    assert (pair.at_server.messages_in, pair.at_server.octets_in) == (5, 15)


@pytest.mark.parametrize("build", BUILDS)
def test_what_is_received_together_is_bounded_in_octets(context: Context, build: str) -> None:
    """By one message more at most; frames that are not kept do not count, as they are not in memory."""
    pair = Pair(context, build)
    for number in range(6):
        pair.client.send([b"%d" % number, bytes(95)])  # 100 octets with the routing id
    cut = [[b"x"] * (MAX_FRAMES + number) + [LARGE] for number in range(2)]
    for frames in cut:
        pair.client.send(frames)
    got: list[tuple[str, list[bytes]]] = []
    for most, octets, there in [(9, 0, 0), (9, 1, 1), (9, 200, 3), (9, 201, 6), (9, 2 * MAX_FRAMES, 8)]:
        until(pair.server.readable)
        pair.server.receive_all(got, most, octets)
        assert len(got) == there
    assert [len(frames) for _, frames in got[6:]] == [MAX_FRAMES] * 2


@pytest.mark.parametrize("build", BUILDS)
def test_fault_leaves_what_was_received_before_it(context: Context, build: str) -> None:
    """A list that is full asks for nothing; a socket that was closed says so and takes nothing away."""
    pair = Pair(context, build)
    pair.client.send([b"waits"])
    got = [("", [b"before"])]
    pair.router.close(linger=0)
    pair.server.receive_all(got, 1, 1 << 20)
    with pytest.raises(zmq.ZMQError) as caught:
        pair.server.receive_all(got, 2, 1 << 20)
    assert caught.value.errno == ENOTSOCK
    assert got == [("", [b"before"])]


@pytest.mark.parametrize("build", BUILDS)
def test_readable_tells_of_a_message(context: Context, build: str) -> None:
    pair = Pair(context, build)
    assert not pair.server.readable()
    pair.client.send([b"x"])
    until(pair.server.readable)
    assert pair.server.receive() == [b"peer", b"x"]
    assert not pair.server.readable()


@pytest.mark.parametrize("frame", [b"x", LARGE], ids=["small", "large"])
@pytest.mark.parametrize("build", BUILDS)
def test_more_frames_than_are_kept(context: Context, build: str, frame: bytes) -> None:
    """They are read and dropped, and the next message begins where it does."""
    pair = Pair(context, build)
    assert pair.client.send([frame] * 3000)
    assert pair.client.send([b"next"])
    got = until(pair.server.receive)
    assert [bytes(each) for each in got] == [b"peer"] + [frame] * (MAX_FRAMES - 1)
    assert pair.server.receive() == [b"peer", b"next"]


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("build", BUILDS)
def test_without_room_nothing_is_sent(context: Context, build: str, transport: str) -> None:
    """Neither a part of a message; all that was taken arrives whole, and then there is room."""
    pair = Pair(context, build, transport, high_water=3)
    number = 0
    while pair.client.send([b"%d" % number, LARGE, b"end"]):
        number += 1
    if transport == "inproc":  # the network may have taken one meanwhile
        assert not pair.client.send([b"never", b"small"])
    for expected in range(number):
        assert [bytes(frame) for frame in until(pair.server.receive)] == [
            b"peer",
            b"%d" % expected,
            LARGE,
            b"end",
        ]
    until(lambda: pair.client.send([b"again"]))
    assert until(pair.server.receive) == [b"peer", b"again"]


@pytest.mark.parametrize("build", BUILDS)
def test_unknown_peer_is_told(context: Context, build: str) -> None:
    """And the message is dropped: the next one goes whole to who is known."""
    pair = Pair(context, build)
    pair.client.send([b"hello"])
    until(pair.server.receive)
    with pytest.raises(zmq.ZMQError) as caught:
        pair.server.send([b"nobody", b"x", LARGE])
    assert caught.value.errno == EHOSTUNREACH
    assert pair.server.send([b"peer", b"y"])
    assert until(pair.client.receive) == [b"y"]


@pytest.mark.parametrize("build", BUILDS)
def test_closed_socket_is_told(context: Context, build: str) -> None:
    pair = Pair(context, build)
    pair.client.send([b"waits"])
    pair.router.close(linger=0)
    pair.dealer.close(linger=0)
    calls: list[Callable[[], object]] = [
        pair.server.receive,
        pair.server.readable,
        lambda: pair.client.send([LARGE]),
    ]
    for call in calls:
        with pytest.raises(zmq.ZMQError) as caught:
            call()
        assert caught.value.errno == ENOTSOCK


@pytest.mark.parametrize("build", BUILDS)
def test_context_that_ended_is_told(build: str) -> None:
    """While it waits for its sockets to be closed they say so."""
    context: Context = zmq.Context()
    pair = Pair(context, build)
    ending = threading.Thread(target=context.term)
    ending.start()

    def has_ended(call: Callable[[], object]) -> bool:
        try:
            call()
        except zmq.ContextTerminated:
            return True
        return False

    calls: list[Callable[[], object]] = [
        pair.server.receive,
        pair.server.readable,
        pair.client.receive,
        lambda: pair.client.send([b"x", LARGE]),
    ]
    for call in calls:
        until(partial(has_ended, call))
    pair.router.close(linger=0)
    pair.dealer.close(linger=0)
    ending.join(DEADLINE_S)
    assert not ending.is_alive()


@NEEDS_NATIVE
def test_message_that_cannot_be_made_leaves_no_part_behind(context: Context) -> None:
    pair = Pair(context, "native")
    view = memoryview(bytes(LARGE))
    reference = weakref.ref(view)
    attempts: list[Any] = [[b"a", view, 5], [view, "text"], [view[::2]], [], [b"a"] * 40 + [None]]
    for frames in attempts:
        with pytest.raises((TypeError, BufferError, IndexError)):
            pair.client.send(frames)
    del view, frames, attempts
    until(lambda: gone(reference))
    assert pair.client.send([b"whole"])
    assert until(pair.server.receive) == [b"peer", b"whole"]


@NEEDS_NATIVE
def test_message_of_nobody_is_read_to_its_end(context: Context) -> None:
    """On a guarded socket each message has a user; one that has none is refused, and the next begins where it does."""
    pair = Pair(context, "native", guarded=True)
    for _ in range(2):
        pair.client.send([b"a", LARGE, b"c"])
    for _ in range(2):
        with pytest.raises(zmq.ZMQError) as caught:
            until(pair.server.receive)
        assert caught.value.errno == EINVAL
    assert pair.server.receive() == []
    pair.client.send([b"a", LARGE, b"c"])
    got: list[tuple[str, list[bytes]]] = []
    with pytest.raises(zmq.ZMQError):
        until(lambda: pair.server.receive_all(got, 8, 1 << 20))
    assert got == []


CHOSEN = """
import ctypes, sys
for path in sys.argv[1:]:
    ctypes.CDLL(path, ctypes.RTLD_GLOBAL)
from specwire.generated.builds import why_pure
from specwire.runtime.transport.messages import PACKAGE, Messages, PureMessages
print(Messages is PureMessages, why_pure(PACKAGE))
"""


def chosen(*libraries: Path, pure: str = "0") -> str:
    """What a process says of the build that it uses."""
    command = [sys.executable, "-c", CHOSEN, *map(str, libraries)]
    variables = {**os.environ, "SPECWIRE_PURE": pure}
    run = subprocess.run(
        command, env=variables, capture_output=True, text=True, timeout=DEADLINE_S, check=True
    )
    return run.stdout.strip()


@NEEDS_NATIVE
def test_build_is_chosen() -> None:
    assert chosen() == "False"
    assert chosen(pure="1") == "True SPECWIRE_PURE=1 is set"


@NEEDS_NATIVE
@pytest.mark.skipif(not has_compiler(), reason="no C compiler")
def test_with_two_libzmq_in_the_process_pyzmq_does_the_work(tmp_path: Path) -> None:
    """Its calls may reach another library than the one beside it."""
    (tmp_path / "other.c").write_text("int zmq_msg_send(void) { return -1; }\n")
    library = tmp_path / "libother.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, tmp_path / "other.c"], check=True)
    assert chosen(library).startswith(
        "True its compiled module cannot be imported: there is no one zmq_msg_send in"
    )


def test_source_of_the_module_has_the_same_name_and_limit() -> None:
    source = Path(messages.__file__).with_name("_native.pyx").read_text(encoding="utf-8")
    assert f'\nBUILD = "{BUILD}"\n' in source
    assert COPY_LIMIT_OCTETS == 16 * 1024 and "\n    COPY_LIMIT = 16 * 1024\n" in source


@pytest.mark.parametrize("build", BUILDS)
def test_origins_have_the_descriptor_of_each_message(context: Context, build: str) -> None:
    """Also for large frames, whose octets are moved out of libzmq's message."""
    pair = Pair(context, build, "tcp")
    origins: set[int] = set()
    server = type(pair.server)(pair.router, MAX_FRAMES, False, addressed=True, origins=origins)
    for frames in ([b"a"], [b"a", LARGE], [b"x"] * (2 * MAX_FRAMES)):
        pair.client.send(frames)
        until(server.receive)
        [descriptor] = origins
        assert descriptor > 2
        origins.clear()
    assert server.received == 3
    pair.client.send([b"a"])
    until(pair.server.receive)
    assert (pair.server.received, origins) == (0, set())
