"""Only the server that sent a file may have it deleted, over any number of restarts; old journals still count."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from specwire.runtime.filemq.access import origin_of
from specwire.runtime.filemq.diskwork import CompleteFile, Deleted, DeleteFile, Failed, Outcome
from specwire.runtime.filemq.inbox import Inbox
from specwire.runtime.transport.keys import KeyPair
from specwire.runtime.transport.security import NULL, CurveClient, PlainClient
from tests.runtime.filemq.inboxes import perform

A, B = "tcp://a:5670", "tcp://b:5670"


@contextmanager
def opened(folder: Path, origin: str = "") -> Iterator[Inbox]:
    inbox = Inbox(folder, sync=False, origin=origin)
    inbox.open()
    yield inbox
    inbox.close()


def receive(inbox: Inbox, *names: str) -> None:
    for name in names:
        perform(inbox, CompleteFile(1, name, 0, None))


def delete(inbox: Inbox, name: str) -> list[Outcome]:
    return perform(inbox, DeleteFile(1, name))


def refusal(name: str, owner: str) -> list[Outcome]:
    return [Failed(1, name, f"{owner}, and is kept", again=False)]


def journal_of(folder: Path) -> Path:
    return folder / ".specwire-inbox/journal"


def test_each_server_deletes_its_own(tmp_path: Path) -> None:
    """Also what it took over from another one, and what has changed in the inbox since."""
    with opened(tmp_path, A) as inbox:
        receive(inbox, "/a", "/b", "/c", "/changed")
    with opened(tmp_path, B) as inbox:
        receive(inbox, "/b", "/own")
        assert delete(inbox, "/a") == refusal("/a", f"came from {A}")
        assert delete(inbox, "/own") == [Deleted(1, "/own")]
    (tmp_path / "changed").write_bytes(b"by somebody")
    with opened(tmp_path, B) as inbox:
        inbox.list_held("/")
        assert delete(inbox, "/changed") == refusal("/changed", f"came from {A}")
        assert delete(inbox, "/b") == [Deleted(1, "/b")]
        receive(inbox, "/b")
    with opened(tmp_path, A) as inbox:
        assert delete(inbox, "/b") == refusal("/b", f"came from {B}")
        assert delete(inbox, "/a") == [Deleted(1, "/a")]
        [deleted] = delete(inbox, "/changed")
        assert isinstance(deleted, Deleted) and deleted.copy.startswith("changed.conflict-")
    assert {path.name for path in tmp_path.iterdir() if path.is_file()} == {"b", "c", deleted.copy}


def test_a_server_is_named_once_for_all_its_files(tmp_path: Path) -> None:
    with opened(tmp_path, A) as inbox:
        receive(inbox, *(f"/{i}" for i in range(100)))
    with opened(tmp_path, B) as inbox:
        receive(inbox, "/of b")
    with opened(tmp_path, A) as inbox:
        receive(inbox, *(f"/{i}" for i in range(100)))
    octets = journal_of(tmp_path).read_bytes()
    assert octets.count(A.encode()) == octets.count(B.encode()) == 1
    assert octets.count(b"\n") == 203


def test_a_journal_written_anew_knows_the_servers_still(tmp_path: Path) -> None:
    with opened(tmp_path, A) as inbox:
        receive(inbox, "/a")
    with opened(tmp_path, B) as inbox:
        receive(inbox, *["/b"] * 1100)
    with opened(tmp_path, B):
        assert journal_of(tmp_path).read_bytes().count(b"\n") == 4, "two servers, two files"
    with opened(tmp_path, B) as inbox:
        assert delete(inbox, "/a") == refusal("/a", f"came from {A}")
        assert delete(inbox, "/b") == [Deleted(1, "/b")]


def test_where_the_line_of_a_server_is_lost_its_files_are_nobodys(tmp_path: Path) -> None:
    """The number that files have is not given to another server, whose they would be then."""
    with opened(tmp_path, A) as inbox:
        receive(inbox, "/a")
    journal = journal_of(tmp_path)
    journal.write_bytes(journal.read_bytes().replace(A.encode(), b'"'))
    with opened(tmp_path, B) as inbox:
        assert inbox.lines_lost == 1
        receive(inbox, "/b")
        assert delete(inbox, "/a") == refusal("/a", "came from another server")
    with opened(tmp_path, A) as inbox:
        assert delete(inbox, "/a") == refusal("/a", "came from another server")
        assert delete(inbox, "/b") == refusal("/b", f"came from {B}")


def test_files_of_old_journals_are_deleted_for_any_server(tmp_path: Path) -> None:
    """They say only that a server sent a file, or that none did."""
    with opened(tmp_path, A) as inbox:
        receive(inbox, "/received", "/mine")
    journal, old = journal_of(tmp_path), []
    for line in journal.read_bytes().split(b"\n")[1:]:
        name, record = json.loads(line)
        if isinstance(record, list):
            old.append(json.dumps([name, [*record[:2], name == "/received"]]))
    assert len(old) == 2
    journal.write_text("\n" + "\n".join(old))
    with opened(tmp_path, B) as inbox:
        assert inbox.lines_lost == 0
        assert delete(inbox, "/mine") == refusal("/mine", "did not come from a server")
        assert delete(inbox, "/received") == [Deleted(1, "/received")]


def test_who_does_not_say_its_server_deletes_nothing_of_one_that_is_known(tmp_path: Path) -> None:
    with opened(tmp_path, A) as inbox:
        receive(inbox, "/a")
    with opened(tmp_path) as inbox:
        receive(inbox, "/any")
        assert delete(inbox, "/a") == refusal("/a", f"came from {A}")
    with opened(tmp_path, A) as inbox:
        assert delete(inbox, "/any") == [Deleted(1, "/any")]


@pytest.mark.parametrize("security", [NULL, PlainClient("ada", "word")])
def test_a_server_without_a_key_is_its_endpoint(security: PlainClient) -> None:
    assert origin_of(A, security) == A


def test_a_server_with_a_key_is_the_same_anywhere() -> None:
    keys = KeyPair("p" * 40, "s" * 40)
    one, other = CurveClient(keys, "k" * 40), CurveClient(keys, "l" * 40)
    assert origin_of(A, one) == origin_of(B, one) != origin_of(A, other)
