"""What a client says it holds, compared with what is published; and how much it may say."""

from __future__ import annotations

import pytest

from specwire.generated.filemq import Cheezburger, Icanhaz, IcanhazOk, Ohai, Operation, Srsly
from specwire.runtime.filemq import peering
from specwire.runtime.filemq.actions import Pause, Send, ServerAction
from specwire.runtime.filemq.catalogue import Catalogue, Entry, Signature
from specwire.runtime.filemq.dialect import Command
from specwire.runtime.filemq.resync import PRUNE, RESYNC, ClientCache
from specwire.runtime.filemq.server import ServerEngine

PEER = b"\x00peer"


def entry(name: str, sha1: str = "AA") -> Entry:
    return Entry(name, 10, sha1, Signature(10, 0, 0))


def catalogue(*names: str) -> Catalogue:
    files = Catalogue()
    for name in names:
        files.put(entry(name))
    return files


def sent(actions: list[ServerAction]) -> list[Command]:
    return [action.command for action in actions if isinstance(action, Send)]


def test_cache_is_compared_by_digest_in_any_case() -> None:
    """Relative and absolute names, digests in either case; what has another digest, or no entry, is lacking."""
    files = catalogue("/p/a", "/p/b", "/p/c", "/p/d", "/q")
    cache = ClientCache("/p", files)
    cache.add([("a", "aa"), ("/p/b", "AA"), ("c", "BB"), ("/q", "AA"), ("../q", "AA")])
    assert list(cache.lacking()) == ["/p/c", "/p/d"]
    assert list(cache.stale()) == []


def test_file_that_comes_while_the_cache_is_gathered() -> None:
    """It was queued when it came; being told of it again does no harm, and forgetting it would."""
    files = catalogue("/a", "/c")
    cache = ClientCache("/", files)
    cache.add([("a", "AA"), ("gone", "AA"), ("b", "AA")])
    files.put(entry("/b"))
    files.remove("/c")
    cache.add([("b", "AA")])
    assert set(cache.lacking()) <= {"/b"}
    assert list(cache.stale()) == ["/gone"]


def test_names_that_nothing_is_called_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that lists files without end is refused, however it spreads them over paths and commands."""
    monkeypatch.setattr(peering, "MAX_STALE_OCTETS", 1000)
    engine = ServerEngine(Catalogue())
    engine.obey(PEER, Ohai(), 0.0)
    for n in range(4):
        cache = tuple((f"{'x' * 190} {n} {m}", "AA") for m in range(1))
        [answer] = sent(engine.obey(PEER, Icanhaz(path=f"/{n}", options=(), cache=cache), 0.0))
        assert isinstance(answer, IcanhazOk)
        [answer] = sent(engine.obey(PEER, Icanhaz(path=f"/{n}", options=(), cache=cache), 0.0))
        assert isinstance(answer, IcanhazOk), "the same names again take nothing"
    [answer] = sent(engine.obey(PEER, Icanhaz(path="/", options=(), cache=(("y" * 250, "AA"),)), 0.0))
    assert isinstance(answer, Srsly)


def test_deletions_that_wait_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that takes nothing, and asks again and again for what else to delete."""
    monkeypatch.setattr(peering, "MAX_WAITING", 100)
    engine = ServerEngine(Catalogue())
    actions = engine.obey(PEER, Ohai(), 0.0)
    for turn in range(50):
        cache = tuple((f"{turn}-{n}", "AA") for n in range(100))
        actions += engine.obey(PEER, Icanhaz(path="/", options=(RESYNC, PRUNE), cache=cache), 0.0)
    assert any(isinstance(action, Pause) for action in actions)
    waiting = 0
    while more := engine.resume(PEER, 0.0):
        deletions = [command for command in sent(more) if isinstance(command, Cheezburger)]
        assert all(command.operation == Operation.DELETE for command in deletions)
        waiting += len(deletions)
    assert 100 <= waiting < 300
