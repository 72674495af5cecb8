"""`specwire zre join`: reading standard input, and settings that cannot be applied yet."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from specwire.runtime.cli.zre import Changes, read_lines
from specwire.runtime.transport.errors import TransportError
from specwire.runtime.zre import ZreSettings
from tests.runtime.kernel.store.stores import run


def test_octets_that_are_no_text_are_replaced() -> None:
    """The lines after them are read too; empty lines are skipped."""

    async def story() -> None:
        lines = read_lines(io.BytesIO(b"one\n\n\xff two\nthree"))
        assert [await anext(lines) for _ in range(3)] == ["one", "\ufffd two", "three"]

    run(story)


def test_reading_waits_for_a_full_queue() -> None:
    """Nothing is lost, and the thread reads at most two lines ahead of the limit and the taken ones."""
    taken, ahead = 0, []

    def source() -> Iterator[bytes]:
        for number in range(500):
            ahead.append(number - taken)
            yield b"%d\n" % number

    async def story() -> None:
        nonlocal taken
        lines = read_lines(source(), limit=5)
        for number in range(500):
            assert await anext(lines) == str(number)
            taken += 1

    run(story)
    assert max(ahead) <= 5 + 2


class Unresolved:
    """A peer whose host names are resolved at the third attempt."""

    def __init__(self) -> None:
        self.attempts: list[tuple[str, ...]] = []
        self.applied = asyncio.Event()

    async def reload(self, settings: ZreSettings) -> None:
        """Apply settings."""
        self.attempts.append(settings.groups)
        if len(self.attempts) < 3:
            raise TransportError("tcp://name:1: Name or service not known")
        self.applied.set()


def changes_of(peer: Any) -> tuple[Changes, list[str]]:
    """Return the changes of a peer, and what is logged."""
    logged: list[str] = []
    log: Any = SimpleNamespace(line=logged.append)
    return Changes(peer, ZreSettings(), log), logged


def test_settings_are_applied_when_names_are_known() -> None:
    """After 0.1 s and 0.2 s; two settings of one reload are applied together."""

    async def story() -> None:
        peer = Unresolved()
        changes, logged = changes_of(peer)
        changes.appliers["evasive_after"](3.0)
        changes.appliers["groups"](("g",))
        await peer.applied.wait()
        assert peer.attempts == [("g",)] * 3
        failure = "not applied yet: tcp://name:1: Name or service not known"
        assert logged == [failure, f"{failure}, try 2"]

    run(story)


def test_later_settings_replace_those_not_applied_yet() -> None:
    """The earlier ones are not tried again."""

    async def story() -> None:
        peer = Unresolved()
        changes, _ = changes_of(peer)
        changes.appliers["groups"](("first",))
        while not peer.attempts:
            await asyncio.sleep(0)
        changes.appliers["groups"](("second",))
        await peer.applied.wait()
        assert peer.attempts == [("first",), ("second",), ("second",)]

    run(story)
