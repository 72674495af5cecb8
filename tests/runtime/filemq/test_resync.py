"""The cache of a client, compared with the published files; and its bounds."""

from __future__ import annotations

import pytest

from specwire.generated.filemq import IcanhazOk, Operation, Srsly
from specwire.runtime.filemq import peering
from specwire.runtime.filemq.catalogue import Catalogue
from specwire.runtime.filemq.resync import PRUNE, RESYNC
from specwire.runtime.filemq.sendqueue import ClientCache
from specwire.runtime.kernel.effects import AwaitRoom
from tests.runtime.filemq.server_driver import PEER, content, entry, peered, sent, subscription


def catalogue(*names: str) -> Catalogue:
    files = Catalogue()
    for name in names:
        files.put(entry(name))
    return files


def test_cache_is_compared_by_digest_in_any_case() -> None:
    """Names are relative or absolute. A file with another digest, or without an entry, is lacking."""
    files = catalogue("/p/a", "/p/b", "/p/c", "/p/d", "/q")
    cache = ClientCache("/p", files)
    cache.add([("a", "aa"), ("/p/b", "AA"), ("c", "BB"), ("/q", "AA"), ("../q", "AA")])
    assert list(cache.lacking()) == ["/p/c", "/p/d"]
    assert list(cache.stale()) == []


def test_file_that_comes_while_the_cache_is_gathered() -> None:
    """It was queued when it came. Sending it again does no harm, and forgetting it would."""
    files = catalogue("/a", "/c")
    cache = ClientCache("/", files)
    cache.add([("a", "AA"), ("gone", "AA"), ("b", "AA")])
    files.put(entry("/b"))
    files.remove("/c")
    cache.add([("b", "AA")])
    assert set(cache.lacking()) <= {"/b"}
    assert list(cache.stale()) == ["/gone"]


def test_names_that_are_not_published_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that lists too many is refused, however it spreads them over paths and commands."""
    monkeypatch.setattr(peering, "MAX_STALE_OCTETS", 1000)
    driver = peered(path=None)
    for n in range(4):
        cache = ((f"{'x' * 190} {n}", "AA"),)
        assert sent(driver.handle(subscription(f"/{n}", (), cache))) == [IcanhazOk()]
        again = sent(driver.handle(subscription(f"/{n}", (), cache)))
        assert again == [IcanhazOk()], "the same names take nothing"
    [answer] = sent(driver.handle(subscription("/", (), (("y" * 250, "AA"),))))
    assert isinstance(answer, Srsly)


def test_deletions_that_wait_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here a client reads nothing, and lists other files again and again."""
    monkeypatch.setattr(peering, "MAX_WAITING", 100)
    driver = peered(path=None)
    effects = []
    for turn in range(50):
        cache = tuple((f"{turn}-{n}", "AA") for n in range(100))
        effects += driver.handle(subscription("/", (RESYNC, PRUNE), cache))
    assert AwaitRoom(PEER, 0) in effects
    waiting = content(driver.play_out(driver.make_room()))
    assert all(command.operation == Operation.DELETE for command in waiting)
    assert 100 <= len(waiting) < 300
