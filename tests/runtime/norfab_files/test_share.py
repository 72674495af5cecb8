"""What is served of a folder, and that nothing outside it is."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specwire.runtime.norfab.files.share import MAX_PIECE_OCTETS, Share, ShareError
from specwire.runtime.norfab.files.urls import UrlError, read_url

HOSTILE = [
    "nf://../outside.txt",
    "nf://sub/../../outside.txt",
    "nf://sub/..",
    "nf://./a.txt",
    "nf:///etc/hostname",
    "nf://a.txt/",
    "nf://",
    "nf://sub//a.txt",
    "nf://a\0.txt",
    "nf://\ud800",
    "nf://" + "d/" * 64 + "a",
    "nf://" + "n" * 256,
    "nf://" + "n/" * 3000,
    "file:///etc/hostname",
    "a.txt",
    "",
]
OUT_OF_REACH = [
    "nf://link.txt",
    "nf://linked/outside.txt",
    "nf://sub",
    "nf://pipe",
    "nf://a.txt/b",
    "nf://none",
    "nf://keys/key",
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "outside.txt").write_text("secret")
    root = tmp_path / "root"
    (root / "sub/deep").mkdir(parents=True)
    (root / "keys").mkdir()
    (root / "keys/key").write_text("secret")
    (root / "a.txt").write_bytes(b"0123456789")
    (root / "sub/b.txt").write_bytes(b"b")
    (root / "sub/deep/ü.txt").write_bytes(b"")
    (root / "sub/.hidden").write_bytes(b"h")
    (root / "__cache__").mkdir()
    (root / "__cache__/c.txt").write_bytes(b"c")
    (root / "link.txt").symlink_to(tmp_path / "outside.txt")
    (root / "linked").symlink_to(tmp_path)
    os.mkfifo(root / "pipe")
    (root / os.fsdecode(b"\xff.txt")).write_bytes(b"no url says this")
    return root


@pytest.fixture
def share(root: Path) -> Share:
    return Share(root, private=[root / "keys", root / "not there"])


def refused(work: Callable[..., Any], *arguments: Any) -> tuple[int, str]:
    """Return status and words of a refusal."""
    with pytest.raises(ShareError) as caught:
        work(*arguments)
    return caught.value.status, str(caught.value)


def test_a_file_is_described_by_its_size_and_digests(share: Share) -> None:
    """MD5 for deployed clients, SHA-256 for ours."""
    found = share.describe("nf://a.txt")
    assert (found.size, found.md5) == (10, "781e5e245d69b566979b86e28d23f2c7")
    assert found.sha256 == "84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882"
    assert share.describe("nf://sub/deep/ü.txt").md5 == "d41d8cd98f00b204e9800998ecf8427e"


@pytest.mark.parametrize(
    ("offset", "size", "wanted"), [(0, 4, b"0123"), (8, 4, b"89"), (10, 4, b""), (99, 4, b"")]
)
def test_a_piece_is_short_only_at_the_end(share: Share, offset: int, size: int, wanted: bytes) -> None:
    """That is how a reader knows."""
    assert share.read("nf://a.txt", offset, size) == wanted


@pytest.mark.parametrize("url", HOSTILE)
def test_a_url_that_is_not_plainly_one_of_the_root_is_refused(share: Share, url: str) -> None:
    """By every task; nothing is repaired."""
    for status, words in (
        refused(share.read, url, 0, 10),
        refused(share.describe, url),
        refused(share.measure, url),
    ):
        assert status == 400 and words and "secret" not in words
    with pytest.raises(UrlError):
        read_url(url)


@pytest.mark.parametrize("url", OUT_OF_REACH)
def test_links_devices_and_private_folders_are_not_there(share: Share, root: Path, url: str) -> None:
    """And no path of this machine is told."""
    for status, words in (refused(share.read, url, 0, 10), refused(share.describe, url)):
        assert status == 404 and str(root) not in words
    if url in ("nf://linked/outside.txt", "nf://keys/key"):
        folder = url.rpartition("/")[0]
        assert refused(share.list_names, folder)[0] == refused(share.walk, folder)[0] == 404


@pytest.mark.parametrize(
    ("offset", "size"), [(-1, 1), (2**63, 1), (0, 0), (0, -1), (0, MAX_PIECE_OCTETS + 1), (0, 2**40)]
)
def test_a_piece_is_within_bounds(share: Share, offset: int, size: int) -> None:
    """Nothing is made of a length that a peer states, and no piece is cut, which would look like the end."""
    assert refused(share.read, "nf://a.txt", offset, size)[0] == 400


def test_folders_are_listed_and_walked(share: Share) -> None:
    """A walk leaves out what is hidden, linked or private, and what no URL can say."""
    assert share.list_names("nf://") == ["__cache__", "a.txt", "keys", "link.txt", "linked", "pipe", "sub"]
    assert share.list_names("nf://sub/") == [".hidden", "b.txt", "deep"]
    assert share.walk("nf://") == ["nf://a.txt", "nf://sub/b.txt", "nf://sub/deep/ü.txt"]
    assert share.walk("nf://sub/deep") == ["nf://sub/deep/ü.txt"]
    assert refused(share.walk, "nf://../")[0] == 400
    assert refused(share.list_names, "nf://a.txt")[0] == 404


def test_every_url_of_a_walk_can_be_read(share: Share) -> None:
    """What is listed is served."""
    for url in share.walk("nf://"):
        share.read(url, 0, 1)


def test_walks_and_lists_are_bounded(share: Share, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with too many names is told, and neither cut nor collected."""
    monkeypatch.setattr("specwire.runtime.norfab.files.share.MAX_LISTED", 2)
    assert refused(share.walk, "nf://") == (400, "the folder has more than 2 names")
    assert refused(share.walk, "nf://sub")[0] == 400
    assert share.list_names("nf://sub/deep") == ["ü.txt"]


def test_a_version_is_read_or_nothing(share: Share, root: Path) -> None:
    """Pieces of two versions are never given under one name of a version."""
    version = share.measure("nf://a.txt")[1]
    assert share.describe("nf://a.txt").version == version
    assert share.read("nf://a.txt", 0, 5, version) == b"01234"
    (root / "new").write_bytes(b"abcdefghij")
    (root / "new").rename(root / "a.txt")
    assert refused(share.read, "nf://a.txt", 5, 5, version)[0] == 417
    assert share.read("nf://a.txt", 5, 5) == b"fghij"
    again = share.describe("nf://a.txt")
    assert again.version != version and again.md5 == hashlib.md5(b"abcdefghij").hexdigest()


def test_a_change_that_leaves_size_and_time_is_seen(share: Share, root: Path) -> None:
    """Digests are not kept of files that may change within one step of the clock."""
    for content in (b"aaaa", b"bbbb", b"cccc"):
        (root / "a.txt").write_bytes(content)
        os.utime(root / "a.txt", (1_000_000_000, 1_000_000_000))
        assert share.describe("nf://a.txt").sha256 == hashlib.sha256(content).hexdigest()


def test_a_settled_file_is_digested_once(share: Share, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand clients that ask cost one reading."""
    monkeypatch.setattr("specwire.runtime.norfab.files.digests.UNSETTLED_NS", -(10**18))
    first = share.describe("nf://a.txt")
    monkeypatch.setattr("specwire.runtime.norfab.files.digests.ATTEMPTS", 0)  # it cannot be digested again
    assert share.describe("nf://a.txt") == first


def test_a_file_that_is_written_to_without_end_is_told(share: Share, root: Path) -> None:
    """Rather than described as what it never was."""
    count = 0

    def write_more() -> bool:
        nonlocal count
        count += 1
        with (root / "a.txt").open("ab") as file:
            file.write(b"more")
        return False

    status, words = refused(share.describe, "nf://a.txt", write_more)
    assert status == 500 and "changes while it is read" in words and count >= 3


def test_a_root_that_is_not_there_is_an_answer(tmp_path: Path) -> None:
    """It may be a disk that is mounted later."""
    assert refused(Share(tmp_path / "none").list_names, "nf://")[0] == 404
