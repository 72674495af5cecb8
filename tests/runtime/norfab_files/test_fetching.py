"""A fetch ends with the whole file, right, or with an error; through losses, changes and crashes."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from specwire.runtime.norfab.files import FetchError, FileCache, FileHandler, fetch
from specwire.runtime.norfab.files.cache import Content

CONTENT = random.Random(7).randbytes(3_000_000)
BIG = Content("sha256", hashlib.sha256(CONTENT).hexdigest(), len(CONTENT))
Answer = tuple[int, bytes]


class Broker:
    """A broker's files, and what goes wrong on the way to them; `asked` counts the questions."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "root"
        self.root.mkdir()
        self.asked: Counter[str] = Counter()
        self.pieces: list[int] = []
        self.before: Callable[[str, Mapping[str, Any]], Answer | None] = lambda task, arguments: None
        self.change: Callable[[str, Answer], Answer] = lambda task, answer: answer
        self.under_way = self.most_under_way = 0
        self.handler = FileHandler(self.root)

    async def ask(self, service: str, task: str, arguments: Mapping[str, Any]) -> Answer:
        """As a client would."""
        assert service == "fss.service.broker"
        self.asked[task] += 1
        if task == "fetch_file":
            self.pieces.append(arguments["offset"])
        early = self.before(task, arguments)
        if early is not None:
            return early
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            answer = await self.handler.perform(task, b"[]", json.dumps(arguments).encode(), "")
        finally:
            self.under_way -= 1
        return self.change(task, answer)


@pytest.fixture
def broker(tmp_path: Path) -> Broker:
    broker = Broker(tmp_path)
    (broker.root / "big.bin").write_bytes(CONTENT)
    (broker.root / "empty").write_bytes(b"")
    return broker


@pytest.fixture
def cache(tmp_path: Path) -> FileCache:
    return FileCache(tmp_path / "cache")


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try again without waiting long."""
    monkeypatch.setattr("specwire.runtime.norfab.files.fetching.PAUSE_S", 0.001)


def get(
    broker: Broker, cache: FileCache, url: str = "nf://big.bin", to: Path | None = None, **more: Any
) -> Path:
    """Fetch once."""
    return asyncio.run(fetch(url, broker.ask, to, cache=cache, **more))


def leftovers(cache: FileCache) -> list[str]:
    """Return the parts that lie in a cache."""
    return [name for name in os.listdir(cache.folder) if name.endswith(".part")]


def test_a_file_is_fetched_whole_several_pieces_at_a_time(broker: Broker, cache: FileCache) -> None:
    """Bounded in number, so memory is bounded."""
    path = get(broker, cache)
    assert path.read_bytes() == CONTENT and path.name == "big.bin"
    assert sorted(broker.pieces) == list(range(0, len(CONTENT), 256 * 1024))
    assert 1 < broker.most_under_way <= 8
    assert leftovers(cache) == []


def test_the_same_content_is_fetched_once(broker: Broker, cache: FileCache) -> None:
    """Under another name, too, and by several at once."""
    (broker.root / "copy.bin").write_bytes(CONTENT)

    async def all_at_once() -> list[Path]:
        urls = ["nf://big.bin", "nf://copy.bin", "nf://big.bin"]
        return await asyncio.gather(*(fetch(url, broker.ask, cache=cache) for url in urls))

    paths = asyncio.run(all_at_once())
    assert [path.name for path in paths] == ["big.bin", "copy.bin", "big.bin"]
    assert all(path.read_bytes() == CONTENT for path in paths)
    get(broker, FileCache(cache.folder))
    assert broker.asked["fetch_file"] == 12  # of 256 KiB each


def test_a_damaged_cache_is_not_believed(broker: Broker, cache: FileCache) -> None:
    """What is given out was digested just before."""
    path = get(broker, cache)
    path.chmod(0o600)
    with path.open("r+b") as file:
        file.write(b"damage")
    assert get(broker, cache).read_bytes() == CONTENT


def test_an_empty_file_is_a_file(broker: Broker, cache: FileCache) -> None:
    """It needs no piece."""
    assert get(broker, cache, "nf://empty").read_bytes() == b""
    assert broker.asked["fetch_file"] == 0


def test_a_destination_is_replaced_in_one_step(broker: Broker, cache: FileCache, tmp_path: Path) -> None:
    """By a file of its own: who writes to it does not spoil the cache."""
    target = tmp_path / "here/config.bin"
    target.parent.mkdir()
    target.write_bytes(b"before")
    assert get(broker, cache, to=target) == target
    target.write_bytes(b"mine now")
    assert get(broker, cache, to=target.parent) == target.parent / "big.bin"
    assert (target.parent / "big.bin").read_bytes() == CONTENT
    assert sorted(os.listdir(target.parent)) == ["big.bin", "config.bin"]


def test_a_fetch_goes_on_where_it_was_cut_off(broker: Broker, cache: FileCache) -> None:
    """Also in another process: what is there is digested again."""

    def cut_off(task: str, arguments: Mapping[str, Any]) -> Answer | None:
        if arguments.get("offset", 0) >= 2_000_000:
            raise KeyError("killed")
        return None

    broker.before = cut_off
    with pytest.raises(KeyError):
        get(broker, cache)
    assert len(leftovers(cache)) == 1
    held = (cache.folder / leftovers(cache)[0]).stat().st_size
    assert held > 0
    broker.before, broker.pieces = lambda task, arguments: None, []
    assert get(broker, FileCache(cache.folder)).read_bytes() == CONTENT
    assert broker.pieces[0] == held


def test_a_part_that_was_damaged_costs_a_new_fetch_and_nothing_else(broker: Broker, cache: FileCache) -> None:
    """Its digest is not that of the file."""
    part = cache.begin(BIG)
    part.append(b"x" * 300_000)
    part.close()
    assert get(broker, cache).read_bytes() == CONTENT
    assert broker.pieces[0] == 300_000 and 0 in broker.pieces


def test_a_part_that_another_process_writes_is_left_alone(broker: Broker, cache: FileCache) -> None:
    """Each has its own; one of them wins, and both have the file."""
    other = cache.begin(BIG)
    other.append(CONTENT[:1000])
    assert get(broker, cache).read_bytes() == CONTENT
    assert other.offset == 1000 and other.path.stat().st_size == 1000
    other.close()


def test_a_file_that_changes_meanwhile_is_never_a_mixture(broker: Broker, cache: FileCache) -> None:
    """Where the broker tells of versions, and where it does not."""
    for with_versions in (True, False):
        newer = random.Random(with_versions).randbytes(len(CONTENT))
        (broker.root / "big.bin").write_bytes(CONTENT)
        swapped = False

        def swap(task: str, arguments: Mapping[str, Any], newer: bytes = newer) -> Answer | None:
            nonlocal swapped
            if arguments.get("offset", 0) >= 1_000_000 and not swapped:
                swapped = True
                (broker.root / "big.bin").write_bytes(newer)
            return None

        def without_version(task: str, answer: Answer) -> Answer:
            if task != "file_details":
                return answer
            details = json.loads(answer[1])
            return 200, json.dumps(
                {key: details[key] for key in ("md5hash", "size_bytes", "exists")}
            ).encode()

        broker.before = swap
        if not with_versions:
            broker.change = without_version
        fresh = FileCache(cache.folder / str(with_versions))
        assert get(broker, fresh).read_bytes() == newer
        assert swapped and leftovers(fresh) == []


def test_a_file_that_keeps_changing_is_an_error(broker: Broker, cache: FileCache) -> None:
    """After some attempts, and nothing of it is given out."""
    broker.change = lambda task, answer: (417, b"{}") if task == "fetch_file" else answer
    with pytest.raises(FetchError, match="changes all the time"):
        get(broker, cache)
    assert broker.asked["file_details"] == 5
    assert leftovers(cache) == []


@pytest.mark.parametrize(
    "spoil", [lambda piece: piece[:-1], lambda piece: piece + b"x", lambda piece: b"x" * len(piece)]
)
def test_pieces_that_are_wrong_are_not_given_out(broker: Broker, cache: FileCache, spoil: Any) -> None:
    """Too short, too long, or not what was told."""
    broker.change = lambda task, answer: (200, spoil(answer[1])) if task == "fetch_file" else answer
    with pytest.raises(FetchError, match="comes damaged"):
        get(broker, cache)
    assert os.listdir(cache.folder) == []


def test_lost_answers_are_asked_for_again(broker: Broker, cache: FileCache) -> None:
    """A broker that is restarted does not end a fetch."""
    rng = random.Random(3)

    def lose(task: str, arguments: Mapping[str, Any]) -> Answer | None:
        chance = rng.random()
        if chance < 0.3:
            raise TimeoutError
        return (500, b"{}") if chance < 0.5 else None

    broker.before = lose
    assert get(broker, cache).read_bytes() == CONTENT


def test_a_broker_that_stays_away_is_an_error_with_its_words(broker: Broker, cache: FileCache) -> None:
    """And what came before is kept for the next attempt."""
    broker.before = lambda task, arguments: (500, b'{"error":"too many questions are open"}')
    with pytest.raises(FetchError, match=r"nf://big\.bin: 500 too many questions are open"):
        get(broker, cache, patience_s=0.01)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"\xff",
        b"[" * 100_000,
        b'{"exists":true,"size_bytes":-1,"md5hash":"00000000000000000000000000000000"}',
        b'{"exists":true,"size_bytes":1e99,"md5hash":"00000000000000000000000000000000"}',
        b'{"exists":true,"size_bytes":5,"md5hash":"../../../../../../../../../../x000"}',
        b'{"exists":true,"size_bytes":5,"sha256":"x"}',
    ],
)
def test_a_description_that_is_none_is_an_error(broker: Broker, cache: FileCache, body: bytes) -> None:
    """Nothing of it reaches the disk."""
    broker.before = lambda task, arguments: (200, body)
    with pytest.raises(FetchError, match="no description"):
        get(broker, cache)
    assert not cache.folder.exists()


def test_a_file_that_does_not_fit_is_told_before_it_is_fetched(broker: Broker, cache: FileCache) -> None:
    """The size that a broker states is not believed to be harmless."""
    told = json.dumps({"exists": True, "size_bytes": 2**62, "md5hash": "0" * 32}).encode()
    broker.before = lambda task, arguments: (200, told)
    with pytest.raises(FetchError, match="do not fit"):
        get(broker, cache)
    assert broker.asked["fetch_file"] == 0


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("nf://none", "is not there"),
        ("nf://../x", "empty component, '.' or '..'"),
        ("http://a/b", "does not begin"),
    ],
)
def test_what_cannot_be_fetched_is_told(broker: Broker, cache: FileCache, url: str, words: str) -> None:
    """With its URL."""
    with pytest.raises(FetchError, match=words):
        get(broker, cache, url)


def test_the_cache_throws_away_what_was_not_used_for_longest(broker: Broker, tmp_path: Path) -> None:
    """But nothing that was given out a short time ago."""
    cache = FileCache(tmp_path / "cache", octets=25)
    paths = []
    for number in range(4):
        (broker.root / f"f{number}").write_bytes(b"%d" % number * 10)
        paths.append(get(broker, cache, f"nf://f{number}"))
    assert all(path.exists() for path in paths)
    for age, path in enumerate(reversed(paths)):
        os.utime(path.parent, (1_000_000_000 - age, 1_000_000_000 - age))
    get(broker, cache, "nf://f0")  # used again
    get(broker, cache, "nf://empty")
    assert [path.exists() for path in paths] == [True, False, False, True]
