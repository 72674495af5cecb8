"""The queue of a client, against the simplest one that does the same: every name in it, one by one."""

from __future__ import annotations

import gc
import tracemalloc
from collections import OrderedDict
from collections.abc import Callable
from itertools import count
from unittest.mock import patch

from hypothesis import example, given, settings
from hypothesis import strategies as st

from specwire.generated.filemq import Ohai, Operation
from specwire.runtime.filemq.catalogue import Catalogue, Entry, Signature
from specwire.runtime.filemq.names import covers
from specwire.runtime.filemq.sendqueue import SendQueue
from specwire.runtime.kernel.events import PeerId
from tests.examples import examples
from tests.runtime.filemq.server_driver import PRUNE, RESYNC, ServerDriver, subscription

CREATE, DELETE = Operation.CREATE, Operation.DELETE

names = st.sampled_from(["/a", "/a/b", "/a/b/c", "/a/d", "/a-b", "/e", "/e/f", "/g", "/h", "/i"])
paths = st.sampled_from(["/", "/a", "/a/b", "/e"])


class PlainQueue:
    """Every change in a row. What is left of an earlier RESYNC goes with the next one."""

    def __init__(self) -> None:
        self.changes: OrderedDict[str, Operation] = OrderedDict()
        self.lacking: set[str] = set()

    def put(self, name: str, operation: Operation) -> None:
        self.changes.pop(name, None)
        self.changes[name] = operation
        self.lacking.discard(name)

    def put_first(self, name: str, operation: Operation) -> None:
        self.put(name, operation)
        self.changes.move_to_end(name, last=False)

    def put_lacking(self, lacking: set[str]) -> None:
        self.lacking = lacking | self.lacking if lacking else self.lacking
        for name in sorted(self.lacking) if lacking else ():
            self.changes[name] = CREATE
            self.changes.move_to_end(name)

    def pop(self) -> tuple[str, Operation] | None:
        if not self.changes:
            return None
        self.lacking.discard(next(iter(self.changes)))
        return self.changes.popitem(last=False)


def entry(name: str, version: int = 0) -> Entry:
    return Entry(name, version, f"{version:040}", Signature(version, 0, 0))


def lacking(files: Catalogue, path: str, held: set[str]) -> list[str]:
    return [name for name in files.names(path) if name not in held]


steps = st.one_of(
    st.tuples(st.sampled_from(["publish", "withdraw", "first", "take"]), names),
    st.tuples(st.just("resync"), paths, st.sets(names)),
)


@settings(max_examples=examples(160))
@given(st.lists(steps, max_size=60))
@example(
    [
        *(("publish", name) for name in ("/g", "/h", "/i")),
        ("withdraw", "/h"),
        ("resync", "/", set()),
        ("withdraw", "/i"),
        ("resync", "/", set()),
    ]
)
def test_queue_is_the_plain_one(story: list[tuple[object, ...]]) -> None:
    """The same changes come out in the same order, whatever was put in and taken meanwhile."""
    files, plain = Catalogue(), PlainQueue()
    queue = SendQueue(files)
    for step in story:
        match step:
            case ("publish", str(name)):
                files.remove(name)
                files.put(entry(name))
                for each in (queue, plain):
                    each.put(name, CREATE)
            case ("withdraw", str(name)):
                if files.remove(name):
                    for each in (queue, plain):
                        each.put(name, DELETE)
            case ("first", str(name)):
                if files.remove(name):
                    for each in (queue, plain):
                        each.put_first(name, DELETE)
            case ("resync", str(path), set() as held):
                queue.put_lacking(lacking(files, path, held))
                plain.put_lacking({*lacking(files, path, held)})
            case ("take", _):
                assert queue.pop() == plain.pop()
        assert len(queue) == len(plain.changes)
        assert bool(queue) == bool(plain.changes)
    while plain.changes:
        assert queue.pop() == plain.pop()
    assert queue.pop() is None


@settings(max_examples=examples(120))
@given(st.lists(st.tuples(st.booleans(), names)), paths)
def test_names_under_a_path_are_those_that_it_covers(story: list[tuple[bool, str]], path: str) -> None:
    """In order, and as they were at the moment of the question."""
    files, there = Catalogue(), set[str]()
    before, as_it_was = files.names(path), list[str]()
    for is_there, name in story:
        if is_there:
            files.put(entry(name))
            there.add(name)
        else:
            assert files.remove(name) == (name in there)
            there.discard(name)
        assert [*before] == as_it_was
        before, as_it_was = files.names(path), sorted(name for name in there if covers(path, name))
        assert [*before] == as_it_was


class Distribution:
    """A catalogue and one client, with the tree of files that the client has by what was taken for it."""

    def __init__(self) -> None:
        self.files = Catalogue()
        self.queue = SendQueue(self.files)
        self.inbox: dict[str, Entry] = {}
        self._versions = count(1)

    def publish(self, name: str) -> None:
        """Write a file; what stands in the way of it goes first, as in a file system."""
        for other in [*self.files.names()]:
            if other != name and (covers(other, name) or covers(name, other)):
                self.withdraw(other)
        self.files.put(entry(name, next(self._versions)))
        self.queue.put(name, CREATE)

    def withdraw(self, name: str) -> None:
        if self.files.remove(name):
            self.queue.put(name, DELETE)

    def resync(self, path: str) -> None:
        """The client tells what it has."""
        held = {name for name, item in self.inbox.items() if item.has_content_of(self.files.find(name))}
        for name in self.inbox:
            if covers(path, name) and self.files.find(name) is None:
                self.queue.put_first(name, DELETE)
        self.queue.put_lacking(lacking(self.files, path, held))

    def pop(self) -> str | None:
        """Send the next change."""
        if (taken := self.queue.pop()) is None:
            return None
        name, operation = taken
        item = self.files.find(name)
        if operation is DELETE:
            self.inbox.pop(name, None)
        elif item is not None:
            in_the_way = [n for n in self.inbox if n != name and (covers(n, name) or covers(name, n))]
            assert not in_the_way, f"{name} cannot be put into its place: {in_the_way} is not deleted yet"
            self.inbox[name] = item
        return name


moves = st.one_of(
    st.tuples(st.sampled_from(["publish", "publish", "withdraw"]), names),
    st.tuples(st.just("take"), st.integers(1, 4)),
    st.tuples(st.just("resync"), paths),
)


def distribute(story: list[tuple[object, ...]]) -> None:
    """Play; then the client has every file as it is published, no name came twice, none was in the way."""
    scene = Distribution()
    for step in story:
        match step:
            case ("publish", str(name)):
                scene.publish(name)
            case ("withdraw", str(name)):
                scene.withdraw(name)
            case ("resync", str(path)):
                scene.resync(path)
            case ("take", int(times)):
                for _ in range(times):
                    scene.pop()
    rest = []
    while (taken := scene.pop()) is not None:
        rest.append(taken)
    assert len(rest) == len(set(rest))
    assert scene.inbox == {name: scene.files.find(name) for name in scene.files.names()}


@settings(max_examples=examples(120))
@given(st.lists(moves, max_size=60))
@example([("publish", "/a/b"), ("take", 1), ("publish", "/a"), ("resync", "/a/b")])
def test_client_gets_everything_and_deletions_come_in_time(story: list[tuple[object, ...]]) -> None:
    distribute(story)


@patch("specwire.runtime.filemq.sendqueue.MANY_CHANGES", 3)
@settings(max_examples=examples(120))
@given(st.lists(moves, max_size=60))
def test_so_it_is_with_many_changes(story: list[tuple[object, ...]]) -> None:
    distribute(story)


# ---- memory

FILES = 20_000
CLIENTS = 4


def catalogue() -> Catalogue:
    files = Catalogue()
    for n in range(FILES):
        files.put(entry(f"/folder {n % 50}/file {n:06}", n))
    return files


def octets_taken(work: Callable[[], object]) -> int:
    """Return by how many octets the memory has grown that is in use, once `work` is done."""
    gc.collect()
    tracemalloc.start()
    try:
        kept = work()
        gc.collect()
        taken, _ = tracemalloc.get_traced_memory()
        assert kept is not None
        return taken
    finally:
        tracemalloc.stop()


def subscribe_all(files: Catalogue, held: dict[str, str]) -> ServerDriver:
    """Return a server with clients that hold these files, ask for the others, and grant no credit."""
    driver = ServerDriver(files=files)
    entries = [*held.items()]
    for client in range(CLIENTS):
        peer = PeerId("clients", b"%d" % client)
        driver.handle(Ohai(), peer=peer)
        for start in range(0, len(entries), 255):
            driver.handle(subscription("/", (), tuple(entries[start : start + 255])), peer=peer)
        driver.handle(subscription("/", (RESYNC, PRUNE)), peer=peer)
    return driver


def test_clients_that_lack_everything_share_the_names() -> None:
    """One reference for each file together, and a few thousand octets for each client."""
    files = catalogue()
    taken = octets_taken(lambda: subscribe_all(files, {})) - 8 * FILES
    assert taken / CLIENTS < 16_000, f"{taken / CLIENTS} octets for each client"


def test_client_that_has_everything_takes_nothing_for_the_files() -> None:
    files = catalogue()
    held = files.digests()
    few = octets_taken(lambda: subscribe_all(Catalogue(), {}))
    taken = octets_taken(lambda: subscribe_all(files, held))
    assert (taken - few) / CLIENTS < FILES / 100, f"{(taken - few) / CLIENTS} octets for each client"


@patch("specwire.runtime.filemq.sendqueue.MANY_CHANGES", 500)
def test_slow_client_takes_little_for_many_new_files() -> None:
    """Files that come while a client grants no credit take a reference each, however many they are."""
    new = [entry(f"/folder {n % 50}/file {n:06}", n) for n in range(FILES // 4)]
    driver = subscribe_all(Catalogue(), {})

    def publish() -> ServerDriver:
        for item in new:
            driver.publish(item)
        return driver

    def list_only() -> Catalogue:
        alone = Catalogue()
        for item in new:
            alone.put(item)
        return alone

    taken = (octets_taken(publish) - octets_taken(list_only)) / CLIENTS
    by_name = max(500, len(new) // 8)
    assert taken < 200 * by_name + 8 * len(new), f"{taken} octets for each client"
