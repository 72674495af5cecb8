"""The memory of messages: none is kept, lost or touched that should not be, in whatever thread and moment."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from errno import ENOTSOCK
from functools import partial
from pathlib import Path

import pytest
import zmq

from specwire.runtime.transport.messages import COPY_LIMIT_OCTETS
from tests.runtime.transport.socket_pairs import (
    BUILDS,
    DEADLINE_S,
    LARGE,
    MAX_FRAMES,
    NATIVE,
    NEEDS_NATIVE,
    TRANSPORTS,
    Context,
    Pair,
    gone,
    until,
)


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("build", BUILDS)
def test_view_that_was_sent_lives_until_libzmq_has_let_go_of_it(
    context: Context, build: str, transport: str
) -> None:
    """Inside the process it is what the receiver looks at; to the network it goes, and is let go of there."""
    pair = Pair(context, build, transport)
    view = memoryview(bytes(LARGE))
    reference = weakref.ref(view)
    assert pair.client.send([b"a", view])
    del view
    got = until(pair.server.receive)
    if transport == "inproc":
        assert not gone(reference)
    assert bytes(got[2]) == LARGE
    got.clear()
    until(lambda: gone(reference))


@pytest.mark.parametrize("build", BUILDS)
def test_views_that_were_not_sent_are_let_go_of(context: Context, build: str) -> None:
    """For want of room, of a peer, or of a socket."""
    pair = Pair(context, build, high_water=1)
    references: list[Callable[[], object]] = []

    def view() -> memoryview:
        made = memoryview(bytes(LARGE))
        references.append(weakref.ref(made))
        return made

    while pair.client.send([view()]):
        pass
    until(lambda: gone(references[-1]))
    with pytest.raises(zmq.ZMQError):
        pair.server.send([b"nobody", view()])
    pair.dealer.close(linger=0)
    with pytest.raises(zmq.ZMQError):
        pair.client.send([view()])
    pair.router.close(linger=0)
    until(lambda: all(map(gone, references)))


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("build", BUILDS)
def test_received_view_outlives_socket_and_context(build: str, transport: str) -> None:
    context: Context = zmq.Context()
    pair = Pair(context, build, transport)
    content = os.urandom(5 * COPY_LIMIT_OCTETS)
    pair.client.send([bytes(content)])
    _, view = until(pair.server.receive)
    del pair
    context.destroy(linger=0)
    assert view == content


@pytest.mark.parametrize("build", BUILDS)
def test_loop_is_told_of_what_was_let_go_of(context: Context, build: str) -> None:
    """Without any other call."""

    async def story() -> None:
        loop = asyncio.get_running_loop()

        def ring(let_go: asyncio.Event, _: object) -> None:
            loop.call_soon_threadsafe(let_go.set)

        if build == "native":
            NATIVE.watch(loop)
        for _ in range(3):
            pair = Pair(context, build, "tcp")
            view = memoryview(bytes(LARGE))
            let_go = asyncio.Event()
            reference = weakref.ref(view, partial(ring, let_go))
            assert pair.client.send([view])
            del view
            await asyncio.wait_for(let_go.wait(), DEADLINE_S)
            assert reference() is None

    asyncio.run(story())


@NEEDS_NATIVE
def test_lent_view_cannot_be_released(context: Context) -> None:
    """What libzmq reads stays where it is."""
    pair = Pair(context, "native")
    growing = bytearray(LARGE)
    view = memoryview(growing)
    pair.client.send([view])
    with pytest.raises(BufferError):
        view.release()
    with pytest.raises(BufferError):
        growing.extend(b"more")
    del pair.server.receive()[1]
    NATIVE.take_back()
    view.release()
    growing.extend(b"more")


@NEEDS_NATIVE
@pytest.mark.parametrize("collection", range(1, 8))
def test_socket_may_be_closed_by_the_garbage_collector(context: Context, collection: int) -> None:
    """It runs whatever code it likes while views are made; what was closed is not touched."""
    pair = Pair(context, "native")
    pair.client.send([LARGE] * 4)
    until(pair.server.readable)
    left = iter(range(collection, 0, -1))

    def close(phase: str, _: object) -> None:
        if phase == "start" and next(left, 0) == 1:
            pair.router.close(linger=0)

    former = gc.get_threshold()
    gc.callbacks.append(close)
    gc.set_threshold(1)
    try:
        pair.server.receive()
    except zmq.ZMQError as error:
        assert error.errno == ENOTSOCK
    finally:
        gc.set_threshold(*former)
        gc.callbacks.remove(close)


def resident_octets() -> int:
    """The memory that the process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("build", BUILDS)
def test_every_message_is_closed(context: Context, build: str) -> None:
    """Those that are received, cut, refused and not sent: what one path forgot would be 160 MB."""
    pair = Pair(context, build, high_water=2)
    middle = bytes(8000)

    def work(rounds: int) -> None:
        for _ in range(rounds):
            pair.client.readable()  # libzmq learns of room that there is again when it is asked for events
            assert pair.client.send([middle] * (MAX_FRAMES + 2))
            assert pair.client.send([middle, middle])
            while pair.client.send([LARGE]):
                pass
            with pytest.raises(zmq.ZMQError):
                pair.server.send([b"nobody", middle, LARGE])
            while pair.server.receive():
                pass
            gone(lambda: None)

    work(100)
    before = resident_octets()
    work(2000)
    assert resident_octets() - before < 16 << 20


@pytest.mark.parametrize("build", BUILDS)
def test_threads_do_not_disturb_each_other(context: Context, build: str) -> None:
    """Each has sockets of its own; what libzmq lets go of in its thread is taken back in any."""
    references: list[Callable[[], object]] = []

    def exchange(number: int) -> None:
        pair = Pair(context, build, "tcp")
        for turn in range(150):
            view = memoryview(bytes([number, turn]) * COPY_LIMIT_OCTETS)
            references.append(weakref.ref(view))
            assert pair.client.send([b"%d" % turn, view, b""])
            del view
            _, said, content, _ = until(pair.server.receive)
            assert (said, bytes(content)) == (b"%d" % turn, bytes([number, turn]) * COPY_LIMIT_OCTETS)

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(exchange, range(4))) == [None] * 4
    assert len(references) == 600
    until(lambda: all(map(gone, references)))


FORKED = """
import asyncio, os, weakref, zmq
from specwire.runtime.transport._native import Messages, watch

async def let_go(*, before):
    context = zmq.Context()
    router, dealer = context.socket(zmq.ROUTER), context.socket(zmq.DEALER)
    router.bind("tcp://127.0.0.1:*")
    dealer.connect(router.getsockopt_string(zmq.LAST_ENDPOINT))
    if before:
        watch(asyncio.get_running_loop())
    view, done = memoryview(bytes(100_000)), asyncio.Event()
    reference = weakref.ref(view, lambda _: done.set())
    Messages(dealer, 8, False).send([view])
    del view
    if not before:
        context.destroy(linger=0)
        watch(asyncio.get_running_loop())
    await asyncio.wait_for(done.wait(), 60)
    context.destroy(linger=0)

asyncio.run(let_go(before=False))
child = os.fork()
asyncio.run(let_go(before=True))
if child == 0:
    os._exit(0)
print(os.waitpid(child, 0)[1])
"""


@NEEDS_NATIVE
def test_copy_of_a_process_hears_its_own_bell() -> None:
    """And a loop that watches hears of what was let go of before there was any."""
    command = [sys.executable, "-c", FORKED]
    run = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S * 3, check=False)
    assert (run.stdout, run.stderr) == ("0\n", "")
