"""What libzmq itself puts on TCP, read back: greetings, handshakes, subscriptions, messages of all sizes."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import zmq

from specwire.runtime.pcap.zmtp_side import Command, Event, Greeted, Introduced, Message, Unreadable, ZmtpSide

DEADLINE_MS = 30_000
FRAMES = [b"", b"short", bytes(range(256)) * 4, b"x" * 100_000, b"end"]


class Recorder:
    """A TCP relay that keeps what each side says: `connecting` and `accepting` in the pieces in which it came."""

    def __init__(self, target: int) -> None:
        self.connecting: list[bytes] = []
        self.accepting: list[bytes] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._run, args=(target,), daemon=True)]
        self._threads[0].start()

    def _run(self, target: int) -> None:
        near, _ = self._listener.accept()
        far = socket.create_connection(("127.0.0.1", target))
        ways = ((near, far, self.connecting), (far, near, self.accepting))
        copying = [threading.Thread(target=self._copy, args=way, daemon=True) for way in ways]
        for thread in copying:
            thread.start()
        for thread in copying:
            thread.join()
        near.close()
        far.close()

    @staticmethod
    def _copy(source: socket.socket, target: socket.socket, kept: list[bytes]) -> None:
        try:
            while octets := source.recv(1 << 16):
                kept.append(octets)
                target.sendall(octets)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            return  # The other side went first.

    def finish(self) -> None:
        """Wait until both sides have said all."""
        self._threads[0].join(DEADLINE_MS / 1000)
        self._listener.close()
        assert not self._threads[0].is_alive()


@contextmanager
def sockets(connecting: int, accepting: int) -> Iterator[tuple[zmq.Socket[bytes], zmq.Socket[bytes]]]:
    context = zmq.Context()
    pair = context.socket(connecting), context.socket(accepting)
    for each in pair:
        each.setsockopt(zmq.LINGER, DEADLINE_MS)
        each.setsockopt(zmq.RCVTIMEO, DEADLINE_MS)
    try:
        yield pair
    finally:
        for each in pair:
            each.close()
        context.term()


def admit_anybody(context: zmq.Context[zmq.Socket[bytes]]) -> None:
    """Answer libzmq's one question about a password (RFC 27): version, request id, 200, text, user, metadata."""
    handler = context.socket(zmq.REP)
    handler.setsockopt(zmq.RCVTIMEO, DEADLINE_MS)
    handler.bind("inproc://zeromq.zap.01")

    def answer() -> None:
        with handler:
            version, request, *_ = handler.recv_multipart()
            handler.send_multipart([version, request, b"200", b"OK", b"alice", b""])

    threading.Thread(target=answer, daemon=True).start()


def join(connecting: zmq.Socket[bytes], accepting: zmq.Socket[bytes]) -> Recorder:
    recorder = Recorder(accepting.bind_to_random_port("tcp://127.0.0.1"))
    connecting.connect(f"tcp://127.0.0.1:{recorder.port}")
    return recorder


def events(pieces: list[bytes]) -> list[Event]:
    side = ZmtpSide(is_whole=True, plausible=lambda frames: True)
    return [event for piece in pieces for event in side.feed(piece)]


@pytest.mark.parametrize("mechanism", ["NULL", "PLAIN"])
def test_dealer_and_router(mechanism: str) -> None:
    with sockets(zmq.DEALER, zmq.ROUTER) as (dealer, router):
        dealer.setsockopt(zmq.IDENTITY, b"me")
        if mechanism == "PLAIN":
            admit_anybody(router.context)
            router.setsockopt(zmq.PLAIN_SERVER, 1)
            dealer.setsockopt(zmq.PLAIN_USERNAME, b"alice")
            dealer.setsockopt(zmq.PLAIN_PASSWORD, b"wonderland")
        recorder = join(dealer, router)
        dealer.send_multipart(FRAMES)
        assert router.recv_multipart() == [b"me", *FRAMES]
        router.send_multipart([b"me", b"answer"])
        assert dealer.recv_multipart() == [b"answer"]
    recorder.finish()
    said, answered = events(recorder.connecting), events(recorder.accepting)
    assert said[0] == Greeted("3.1", mechanism) and answered[0] == Greeted("3.1", mechanism)
    assert Introduced("DEALER", b"me") in said and said[-1] == Message(tuple(FRAMES))
    assert Introduced("ROUTER", b"") in answered and answered[-1] == Message((b"answer",))
    assert "wonderland" not in repr(said)


def test_curve_is_told_and_nothing_of_it_read() -> None:
    public, secret = zmq.curve_keypair()
    with sockets(zmq.DEALER, zmq.ROUTER) as (dealer, router):
        router.curve_server, router.curve_secretkey = True, secret
        dealer.curve_serverkey = public
        dealer.curve_publickey, dealer.curve_secretkey = zmq.curve_keypair()
        recorder = join(dealer, router)
        dealer.send(b"hello")
        assert router.recv_multipart()[1:] == [b"hello"]
    recorder.finish()
    told = [Greeted("3.1", "CURVE"), Unreadable("it is encrypted (CURVE)")]
    assert events(recorder.connecting) == told and events(recorder.accepting) == told
    # The recorder came later: the commands of the mechanism are recognised.
    late = ZmtpSide(is_whole=False, plausible=lambda frames: True)
    assert list(late.feed(recorder.connecting[-1]))[-1:] == [Unreadable("it is encrypted (CURVE)")]


def test_subscriptions_are_no_messages() -> None:
    with sockets(zmq.SUB, zmq.XPUB) as (sub, xpub):
        recorder = join(sub, xpub)
        sub.subscribe(b"topic")
        assert xpub.recv() == b"\x01topic"
        xpub.send(b"topic 1")
        assert sub.recv() == b"topic 1"
        sub.unsubscribe(b"topic")
        assert xpub.recv() == b"\x00topic"
    recorder.finish()
    assert events(recorder.connecting)[1:] == [
        Introduced("SUB", b""),
        Command("SUBSCRIBE"),
        Command("CANCEL"),
    ]
    assert events(recorder.accepting)[1:] == [Introduced("XPUB", b""), Message((b"topic 1",))]
