"""Who may do what: roles, patterns, defaults, and tables that are not well written."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from specwire.runtime.norfab.security.keyring import Keyring
from specwire.runtime.norfab.security.table import Peer, Table
from specwire.runtime.norfab.security.tablefile import AccessError, describe_peer, load_table
from specwire.runtime.transport.keys import KeyFileError

KEY = "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"
KEYS = [KEY[:-1] + letter for letter in "abcdef"]


def peer(name: str = "p", **fields: Any) -> Peer:
    """Return a peer, a client of everything unless other is said."""
    return Peer(**{"name": name, "key": KEY, "roles": ("client",), "call": ("*",), **fields})


def test_unprintable_characters_are_escaped_in_the_table() -> None:
    """The table still has the same values; TOML does not allow DEL in a string."""
    hostile = 'a"\n[root]\x7f\x9b\u202e\U000e0041'
    written = describe_peer(peer(call=(hostile,)), KEY)
    assert all(line.isprintable() for line in written.split("\n"))
    assert tomllib.loads(written) == {"p": {"key": KEY, "roles": ["client"], "call": [hostile]}}


def test_client_calls_what_matches() -> None:
    """A service alone means all of its tasks; with a task, patterns on both sides of the colon."""
    table = Table([peer(call=("add", "net*:show_*", "inv:get"))])
    assert table.may_call("p", "add", "anything")
    assert table.may_call("p", "netmiko", "show_version")
    assert not table.may_call("p", "netmiko", "configure")
    assert table.may_call("p", "inv", "get")
    assert not table.may_call("p", "inv", "get_all")
    assert not table.may_call("p", "adder", "x")
    assert not table.may_call("q", "add", "x")


def test_question_for_results_needs_the_service_alone() -> None:
    """A client that may call one task may ask for results of the service."""
    table = Table([peer(call=("inv:get",))])
    assert table.may_call("p", "inv", "")
    assert not table.may_call("p", "add", "")


def test_client_manages_and_sees_nothing_of_others_by_default() -> None:
    """Its own jobs are its own."""
    table = Table([peer()])
    assert table.may_see("p", "p")
    assert not table.may_see("p", "q")
    assert not table.may_manage("p", "show_workers")
    assert not table.may_serve("p", "p", "svc")


def test_admin_does_everything_unless_told_less() -> None:
    """Each right has its own default."""
    table = Table(
        [
            peer("root", roles=("admin",), call=None),
            peer("half", key=KEYS[0], roles=("admin",), manage=("show_*",)),
        ]
    )
    assert table.may_call("root", "any", "thing")
    assert table.may_see("root", "p")
    assert table.may_manage("root", "shutdown")
    assert table.may_manage("half", "show_workers")
    assert not table.may_manage("half", "shutdown")
    assert not table.may_serve("root", "root", "svc")


def test_worker_serves_under_its_names_and_asks_for_its_own() -> None:
    """It may call the broker's inventory and files, and nothing else."""
    table = Table([peer("w", roles=("worker",), call=None, serve=("net*",), names=("site-*", "w"))])
    assert table.may_serve("w", "site-1", "netmiko")
    assert table.may_serve("w", "w", "netmiko")
    assert not table.may_serve("w", "w-1", "netmiko")
    assert not table.may_serve("w", "site-1", "other")
    assert table.may_call("w", "sid.service.broker", "get_inventory")
    assert table.may_call("w", "fss.service.broker", "fetch_file")
    assert not table.may_call("w", "netmiko", "show")
    assert table.may_have_inventory("w", "site-1")
    assert not table.may_have_inventory("w", "other")


@pytest.mark.parametrize(
    ("routing_id", "own"),
    [
        (b"p", True),
        (b"p-1", True),
        (b"p1", False),
        (b"q", False),
        (b"", False),
        (b"\x00\x6b\x8b\x45\x67", True),
        (b"p-\xff", False),
        (b"p-\n", True),
    ],
)
def test_routing_ids_are_bound_to_users(routing_id: bytes, own: bool) -> None:
    """The name, the name and more, or libzmq's own number."""
    assert Table([peer()]).owns("p", routing_id) is own


def test_nobody_owns_anything_without_a_name() -> None:
    """A user that is not in the table has no rights at all."""
    table = Table([])
    for answer in (
        table.owns("", b""),
        table.owns("", b"\0\0\0\0\1"),
        table.may_see("", ""),
        table.may_call("", "s", "t"),
        table.may_manage("", ""),
        table.may_serve("", "", ""),
        table.may_have_inventory("", ""),
    ):
        assert answer is False


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"name": ""}, "1 to 200 octets"),
        ({"name": "a\0b"}, "1 to 200 octets"),
        ({"name": "a*"}, "pattern"),
        ({"roles": ()}, "no role"),
        ({"roles": ("worker",), "call": None}, "needs serve"),
        ({"serve": ("x",)}, "role worker"),
        ({"call": None}, "needs call"),
        ({"roles": ("worker",), "serve": ("x",)}, "call is for"),
    ],
)
def test_peers_that_are_not_well_described(fields: dict[str, Any], fault: str) -> None:
    """Each fault names the peer and says what to do."""
    with pytest.raises(ValueError, match=fault):
        Table([peer(**fields)])


def test_names_and_keys_are_each_one_peers() -> None:
    """Two peers with one name, or one key, would be one."""
    with pytest.raises(ValueError, match="another peer's too"):
        Table([peer(), peer(key=KEYS[0])])
    with pytest.raises(ValueError, match="is that of 'p' too"):
        Table([peer(), peer("q")])


def test_keyring_makes_what_a_broker_needs(tmp_path: Path) -> None:
    """Keys for the broker and three peers, secrets for the owner alone; a second time nothing is touched."""
    ring = Keyring(tmp_path / "keys")
    assert ring.prepare() == ["admin", "client", "worker"]
    before = {file.name: file.read_bytes() for file in ring.folder.iterdir()}
    assert {name for name in before if name.endswith("_secret")} == {
        f"{name}.key_secret" for name in ("broker", "admin", "client", "worker")
    }
    assert all(file.stat().st_mode & 0o077 == 0 for file in ring.folder.iterdir() if "secret" in file.name)
    assert ring.folder.stat().st_mode & 0o077 == 0
    assert ring.prepare() == []
    assert before == {file.name: file.read_bytes() for file in ring.folder.iterdir()}
    table = ring.table()
    assert table.may_serve("worker", "any-name", "any")
    assert table.may_call("client", "any", "thing")
    assert not table.may_manage("client", "shutdown")
    assert table.may_manage("admin", "shutdown")
    assert ring.peer("client").server_key == ring.server().keys.public


def test_added_peer_is_in_the_table_as_it_was_described(tmp_path: Path) -> None:
    """Every right survives the file, whatever is in its patterns."""
    ring = Keyring(tmp_path)
    ring.prepare()
    described = Peer(
        name='a "b" ü',
        key="",
        roles=("client", "worker"),
        names=("x-*", 'q"\\'),
        call=("s:t*",),
        serve=("s",),
        see=("b",),
        manage=("show_*",),
    )
    added = ring.add(described)
    table = ring.table()
    assert table.names[added.key] == described.name
    user = described.name
    assert table.owns(user, b'q"\\')
    assert table.may_call(user, "s", "two")
    assert table.may_see(user, "b")
    assert table.may_manage(user, "show_x")
    with pytest.raises(AccessError, match="already"):
        ring.add(described)


@pytest.mark.parametrize("name", ["broker", "a/b", "../x", ""])
def test_names_that_cannot_be_files_are_refused(tmp_path: Path, name: str) -> None:
    """Nothing is written outside the folder, and the broker's own keys stay."""
    ring = Keyring(tmp_path / "keys")
    ring.prepare()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises((AccessError, KeyFileError)):
        ring.add(peer(name, key=""))
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "lists nobody"),
        ("x = [", "is not TOML"),
        ("[ada]\nroles = ['client']", "needs key"),
        ("ada = 3", "write a table"),
        ("[ada]\nkey = 'short'\nroles = ['client']", "is no public key"),
        ("[ada]\nkey = 'none.key'\nroles = ['client']", "none.key cannot be read"),
        (f"[ada]\nkey = '{KEY}'\nroles = ['king']", "roles"),
        (f"[ada]\nkey = '{KEY}'\nroles = 'client'", "roles"),
        (f"[ada]\nkey = '{KEY}'\nroles = ['client']\ncal = ['*']", "unknown entry 'cal'"),
        (f"[ada]\nkey = '{KEY}'\nroles = ['client']\ncall = [1]", "call"),
        (f"[ada]\nkey = '{KEY}'\nroles = ['client']", "needs call"),
    ],
)
def test_files_that_cannot_be_used(tmp_path: Path, text: str, fault: str) -> None:
    """The sentence names the file, the peer and what is wrong."""
    file = tmp_path / "access.toml"
    file.write_text(text)
    with pytest.raises(AccessError, match=fault) as raised:
        load_table(file)
    assert str(file) in str(raised.value) or "none.key" in fault


def test_file_that_is_not_there_or_not_text(tmp_path: Path) -> None:
    """Both are told with the name."""
    with pytest.raises(AccessError, match="cannot be read"):
        load_table(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b"[\xfc]")
    with pytest.raises(AccessError, match="not UTF-8"):
        load_table(tmp_path / "latin.toml")


def test_table_that_becomes_another_is_it_for_everybody() -> None:
    """The guard's names and all rights change together."""
    table = Table([peer()])
    names = table.names
    table.become(Table([peer("q", key=KEYS[1])]))
    assert names == {KEYS[1]: "q"}
    assert not table.may_call("p", "s", "t")
    assert table.may_call("q", "s", "t")
