"""ZMTP peer (NULL) without libzmq that sends endless messages, and the memory of a process."""

from __future__ import annotations

import socket
import struct
import time
from pathlib import Path
from types import TracebackType
from typing import Self

GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
MORE, LAST = 1, 0
LONG = 2
BLOCK_OCTETS = 1 << 16
TIMEOUT_S = 100.0


def frame(body: bytes, flags: int = MORE) -> bytes:
    """Encode a frame."""
    if len(body) < 256:
        return bytes([flags, len(body)]) + body
    return bytes([flags | LONG]) + len(body).to_bytes(8, "big") + body


def command(name: bytes, body: bytes) -> bytes:
    """Encode a command."""
    octets = bytes([len(name)]) + name + body
    return bytes([4, len(octets)]) + octets


class RawPeer:
    """Connection of a DEALER, with the handshake done."""

    def __init__(self, endpoint: str) -> None:
        host, _, port = endpoint.removeprefix("tcp://").rpartition(":")
        self.socket = socket.create_connection((host.strip("[]"), int(port)), timeout=TIMEOUT_S)
        self.socket.sendall(GREETING)
        self._take(len(GREETING))
        self.socket.sendall(command(b"READY", b"\x0bSocket-Type" + struct.pack(">I", 6) + b"DEALER"))
        self._take(self._take(2)[1])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def send(self, *frames: bytes) -> None:
        """Send a whole message."""
        bodies = [frame(body) for body in frames[:-1]]
        self.socket.sendall(b"".join([*bodies, frame(frames[-1], LAST)]))

    def pour(self, body: bytes, octets: int) -> int:
        """Send frames with MORE set until `octets` are sent or the server hangs up.

        Return the number of octets sent.
        """
        one = frame(body)
        block = one * max(1, BLOCK_OCTETS // len(one))
        sent = 0
        try:
            while sent < octets:
                self.socket.sendall(block)
                sent += len(block)
        except OSError:
            pass
        return sent

    def is_cut(self, timeout_s: float = TIMEOUT_S) -> bool:
        """Return whether the server hangs up within the time."""
        self.socket.settimeout(timeout_s)
        try:
            while self.socket.recv(BLOCK_OCTETS):
                pass
        except TimeoutError:
            return False
        except OSError:
            pass
        return True

    def _take(self, octets: int) -> bytes:
        taken = b""
        while len(taken) < octets:
            part = self.socket.recv(octets - len(taken))
            assert part, "the other side hung up during the handshake"
            taken += part
        return taken


def flood(endpoint: str, body: bytes, octets: int, *, first: bytes | None = None, pid: int) -> Flood:
    """Send endless messages over one connection after the other until `octets` are sent.

    Args:
        first: a whole message that each connection sends first.
        pid: process id of the server, whose memory is measured meanwhile.
    """
    before = resident(pid)
    sent = connections = 0
    peak = before
    ends_at = time.monotonic() + 3600
    while sent < octets and time.monotonic() < ends_at:
        with RawPeer(endpoint) as peer:
            if first is not None:
                peer.send(first)
            connections += 1
            left = octets - sent
            while left > 0:
                done = peer.pour(body, min(left, 1 << 18))
                sent, left = sent + done, left - done
                peak = max(peak, resident(pid))
                if done < min(left, 1 << 18):
                    break
    return Flood(sent, connections, peak - before, resident(pid) - before)


class Flood:
    """Outcome of `flood`: octets sent, connections, and growth of the server, peak and final."""

    def __init__(self, octets: int, connections: int, grew: int, kept: int) -> None:
        self.octets, self.connections, self.grew, self.kept = octets, connections, grew, kept

    def __repr__(self) -> str:
        return (
            f"{self.octets:,} octets over {self.connections} connections; the server grew by {self.grew:,} "
            f"at most and by {self.kept:,} at the end"
        )


def resident(pid: int) -> int:
    """Return the resident memory of a process, in octets."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096
