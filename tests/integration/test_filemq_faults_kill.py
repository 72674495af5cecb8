"""`kill -9` of either side in the middle of a large file, again and again: in the end every file is whole.

After each kill the file goes on where it stopped, and what was sent in all shows that nothing more is sent again
than was under way.

The default run is short. `SPECWIRE_SOAK_ROUNDS` (kills) and `SPECWIRE_SOAK_OCTETS` (size of the file) make it
long, and `SPECWIRE_SEED` repeats the choices of a run whose seed was printed.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import shutil
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

from specwire.runtime.filemq.connection import WINDOW_OCTETS
from specwire.runtime.filemq.resync import RESUME_FROM_OCTETS
from specwire.runtime.filemq.server import CHUNK_OCTETS
from tests.integration.filemq_process import PeerProcess, kept_endpoint, start
from tests.integration.filemq_watch import Line, watch_capture

ROUNDS = int(os.environ.get("SPECWIRE_SOAK_ROUNDS", "2"))
OCTETS = int(os.environ.get("SPECWIRE_SOAK_OCTETS", str(32_000_000)))
SEED = int(os.environ.get("SPECWIRE_SEED", random.randrange(2**32)))
ROUND_TIMEOUT_S = 180.0
TRIES = 20
RESERVED = ".specwire-inbox"
JOURNAL = "journal"
KEPT_OCTETS = RESUME_FROM_OCTETS + 2 * CHUNK_OCTETS
"""From so much on, an unfinished file is certain to be kept: with the chunk before, it was."""

SERVER_KEEPS_OCTETS = 12_000_000
"""More than the credit that a client gives, so a server that stops so early has not sent the rest."""

LOST_OCTETS = 2 * WINDOW_OCTETS
"""What a kill may cost: content that was received and not written, with room for what the capture saw late."""


class Stage:
    """A published folder, an inbox, and the two processes between them."""

    def __init__(self, folder: Path, endpoint: str) -> None:
        self.source, self.inbox = folder / "source", folder / "inbox"
        self.source.mkdir()
        self.versions = 0
        self.received = 0
        self.peers: dict[str, PeerProcess] = {}
        self._captures: dict[str, Path] = {}
        self._numbers = count()
        self._folder, self._endpoint = folder, endpoint

    async def start(self, side: str) -> None:
        """Start one side, and wait for the server to listen."""
        folder = self._captures[side] = self._folder / f"capture {next(self._numbers)}"
        capture = ("--capture", str(folder))
        if side == "server":
            peer = await start("serve", str(self.source), "--endpoint", self._endpoint, *capture)
        else:
            peer = await start("subscribe", self._endpoint, "/", "--inbox", str(self.inbox), *capture)
        self.peers[side] = peer
        if side == "server":
            await peer.line_with("serving ")

    async def kill(self, side: str) -> None:
        """Kill one side, and see what it said and heard so far."""
        await self.peers[side].kill()
        self._check_capture(side)

    async def stop(self, side: str) -> None:
        """Stop one side in good order, and see what it said and heard so far."""
        await self.peers[side].stop()
        self._check_capture(side)

    def _check_capture(self, side: str) -> None:
        folder = self._captures[side]
        lines: list[Line] = []
        watch = watch_capture(folder, "C" if side == "client" else "S", lines)
        if side == "client":
            self.received += sum(line.octets for line in lines if line.name == "/large")
        assert watch.seen["S:OhaiOk"], "the capture holds the traffic"
        assert not watch.violations, watch.violations
        shutil.rmtree(folder)

    def publish(self, name: str, content: bytes) -> str:
        """Put a file into the published folder at one stroke; return its digest."""
        aside = self._folder / "aside"
        aside.write_bytes(content)
        aside.rename(self.source / name)
        return hashlib.sha1(content).hexdigest().upper()

    def inode(self) -> int | None:
        """What tells the large file in the inbox from its next version."""
        try:
            return (self.inbox / "large").stat().st_ino
        except FileNotFoundError:
            return None

    async def until_part_has(self, octets: int, before: int | None) -> None:
        """Return when so much of the large file is written aside, or it is in its place already."""
        while self.inode() == before and size_aside(self.inbox) < octets:
            await asyncio.sleep(0.0005)

    async def goes_on(self, side: str, octets: int) -> None:
        """See that the side that was killed goes on with the large file, of which so much was written aside."""
        line = await self.peers[side].line_with("resumed /large")
        resumed = int(line.split(" at ")[1].split()[0].replace(",", ""))
        if side == "client":
            assert resumed == octets
        else:  # the client has written on for a while
            assert octets <= resumed <= OCTETS

    async def interrupt(self, side: str, rng: random.Random) -> tuple[str, str]:
        """Freeze `side` in the middle of a new version; return the digests held and due."""
        held = digest(self.inbox / "large")
        for _ in range(TRIES):
            before = self.inode()
            due = self.publish("large", rng.randbytes(OCTETS))
            self.versions += 1
            await self.until_part_has(rng.randrange(KEPT_OCTETS, OCTETS - SERVER_KEEPS_OCTETS), before)
            self.peers[side].freeze()
            if self.inode() == before:
                return held, due
            self.peers[side].thaw()  # it was too quick for us: the next version, then
            await self.peers["client"].line_with(due)
            held = due
        raise AssertionError(f"{TRIES} transfers were over before they could be interrupted")


def size_aside(inbox: Path) -> int:
    """Return how large the largest file is that is not in its place yet, 0 where there is none."""
    largest = 0
    with os.scandir(inbox / RESERVED) as files:
        for file in files:
            with suppress(FileNotFoundError):
                largest = max(largest, file.stat().st_size if file.name != JOURNAL else 0)
    return largest


def digest(path: Path) -> str:
    """Return the digest of a file as FILEMQ peers print it, empty where there is none."""
    return hashlib.sha1(path.read_bytes()).hexdigest().upper() if path.exists() else ""


def tree(folder: Path) -> dict[str, str]:
    """Return the digests of the files in a folder, by name."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): digest(path) for path in files}


@pytest.mark.parametrize("first", ["client", "server"])
def test_killed_in_the_middle_of_a_file(tmp_path: Path, first: str) -> None:
    """Whoever dies, a reader of the inbox sees the old version or the new one, and the new one in the end."""
    rng = random.Random(f"{SEED} {first}")
    print(f"SPECWIRE_SEED={SEED}")
    sides = ["client", "server"] if first == "client" else ["server", "client"]

    async def story(endpoint: str) -> None:
        stage = Stage(tmp_path, endpoint)
        stage.publish("small", b"there from the start")
        try:
            await stage.start("server")
            await stage.start("client")
            await stage.peers["client"].line_with("received /small")
            for number in range(ROUNDS):
                async with asyncio.timeout(ROUND_TIMEOUT_S):
                    side = sides[number % 2]
                    held, due = await stage.interrupt(side, rng)
                    await stage.kill(side)
                    aside = size_aside(stage.inbox)
                    assert digest(stage.inbox / "large") == held, "a half file was put in place"
                    late = stage.publish(f"made while the {side} was away {number}", rng.randbytes(1000))
                    await stage.start(side)
                    await stage.goes_on(side, aside)
                    await stage.peers["client"].line_with(due)
                    await stage.peers["client"].line_with(late)
            await stage.stop("client")
            await stage.stop("server")
        finally:
            for peer in stage.peers.values():
                await peer.end()
        assert stage.received <= stage.versions * OCTETS + ROUNDS * LOST_OCTETS
        held_tree = tree(stage.inbox)
        own = {name for name in held_tree if Path(name).parts[0] == RESERVED}
        assert own <= {f"{RESERVED}/{JOURNAL}", f"{RESERVED}/trash/large"}, "nothing unfinished is left"
        assert {name: held_tree[name] for name in held_tree.keys() - own} == tree(stage.source)
        for folder in (stage.source, stage.inbox):
            shutil.rmtree(folder)  # pytest keeps what is left, and this is large

    with kept_endpoint() as endpoint:
        asyncio.run(story(endpoint))
