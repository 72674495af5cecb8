"""A broker that only repeats what flux-core 0.88 was recorded to say, and the framing to say it in.

Nothing here is ours but the test: the framing is written from the facts, the messages come from the vectors, and a
request that was not recorded, octet for octet but for its matchtag, ends the connection.
"""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any

from tests.generated.vectors import entries, frames_of

NATIVE, SPECIFIED = bytes.fromhex("1200eeff"), bytes.fromhex("ffee0012")
TIMEOUT_S = 60.0

Frames = tuple[bytes, ...]


def framed(frames: Frames | list[bytes], magic: bytes = NATIVE) -> bytes:
    """Return the octets of a message on the local socket."""
    body = b"".join(
        (bytes((len(part),)) if len(part) < 255 else b"\xff" + len(part).to_bytes(4, "big")) + part
        for part in frames
    )
    return magic + len(body).to_bytes(4, "big") + body


def unframed(body: bytes) -> Frames:
    """Return the parts of a message's body."""
    parts, at = [], 0
    while at < len(body):
        size, at = body[at], at + 1
        if size == 255:
            size, at = int.from_bytes(body[at : at + 4], "big"), at + 4
        parts.append(body[at : at + size])
        at += size
    return tuple(parts)


def untagged(frames: Frames) -> Frames:
    """Return frames without their matchtag, the last four octets."""
    return (*frames[:-1], frames[-1][:-4])


def tagged(frames: Frames, matchtag: bytes) -> Frames:
    """Return frames with another matchtag."""
    return (*frames[:-1], frames[-1][:-4] + matchtag)


def local(name: str) -> dict[str, Any]:
    """Return the entry of that name in the recordings of the local socket."""
    return next(e for e in entries("flux-core-0.88.json") if e["name"] == name)


@cache
def answers() -> dict[Frames, tuple[Frames, ...]]:
    """Return the recorded responses by request, without matchtags."""
    found: dict[Frames, tuple[Frames, ...]] = {}
    for file in ("flux-core-0.88.json", "flux-cli-0.88.json"):
        recorded = [e for e in entries(file) if e["transport"] == "local-uds" and "type" in e["fields"]]
        for at, entry in enumerate(recorded):
            if entry["fields"]["type"] == 1 and not entry["fields"]["flags"] & 4:
                found.setdefault(untagged(frames_of(entry)), tuple(_responses(entry, recorded[at + 1 :])))
    return found


def _responses(request: dict[str, Any], later: list[dict[str, Any]]) -> Iterator[Frames]:
    """Yield what was said to `request`: what has its matchtag and topic, up to the next that does as well."""
    for entry in later:
        fields = entry["fields"]
        same = (fields.get("topic"), fields.get("aux2")) == (
            request["fields"].get("topic"),
            request["fields"]["aux2"],
        )
        if same and fields["type"] == 1:
            return
        if same and fields["type"] == 2:
            yield untagged(frames_of(entry))


class Conversation:
    """The broker's end of one connection, for a script in a thread."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        connection.settimeout(TIMEOUT_S)

    def say(self, octets: bytes) -> None:
        """Send."""
        self.socket.sendall(octets)

    def hear(self) -> Frames:
        """Return the next message's frames; raises EOFError at the end."""
        header = self._exactly(8)
        assert header[:4] == NATIVE
        return unframed(self._exactly(int.from_bytes(header[4:], "big")))

    def hear_rpc(self, topic: str) -> Frames:
        """Return the next message's frames, which are those of a request with this topic."""
        frames = self.hear()
        assert frames[1] == topic.encode(), frames
        return frames

    def reply(
        self, request: Frames, *, payload: bytes | None = None, errnum: int = 0, flags: int = 0
    ) -> None:
        """Answer with what libflux's clients accept."""
        flags |= 0x09 | (0x02 if payload is not None else 0)
        proto = b"\x8e\x01\x02" + bytes((flags,)) + bytes(4) + b"\0\0\0\5" + errnum.to_bytes(4, "big")
        parts = (b"", request[1], *(() if payload is None else (payload,)), proto + request[-1][-4:])
        self.say(framed(parts))

    def event(self, topic: str, payload: bytes | None, sequence: int) -> None:
        """Publish."""
        flags = 0x09 | (0x02 if payload is not None else 0)
        proto = (
            b"\x8e\x01\x04"
            + bytes((flags,))
            + bytes(4)
            + b"\0\0\0\5"
            + sequence.to_bytes(4, "big")
            + bytes(4)
        )
        self.say(framed((b"", topic.encode(), *(() if payload is None else (payload,)), proto)))

    def repeat(self) -> None:
        """Answer as recorded until the client goes."""
        try:
            while True:
                request = self.hear()
                for response in answers()[untagged(request)]:
                    self.say(framed((*response[:-1], response[-1] + request[-1][-4:])))
        except EOFError:
            return

    def _exactly(self, octets: int) -> bytes:
        got = b""
        while len(got) < octets:
            more = self.socket.recv(octets - len(got))
            if not more:
                raise EOFError
            got += more
        return got


@contextmanager
def broker(script: Callable[[Conversation], None], *, authorisation: bytes = b"\0") -> Iterator[str]:
    """Run `script` for the first that connects; yields the URI. What goes wrong in it is raised at the end."""
    with (
        tempfile.TemporaryDirectory() as folder,
        socket.socket(socket.AF_UNIX) as listening,
        ThreadPoolExecutor(max_workers=1) as pool,
    ):
        path = os.path.join(folder, "local-0")
        listening.bind(path)
        listening.listen()
        listening.settimeout(TIMEOUT_S)

        def play() -> None:
            with listening.accept()[0] as connection:
                conversation = Conversation(connection)
                if authorisation:  # who waits for it in vain may be gone already
                    conversation.say(authorisation)
                script(conversation)

        playing = pool.submit(play)
        yield f"local://{path}"
        playing.result(TIMEOUT_S)
