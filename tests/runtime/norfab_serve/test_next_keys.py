"""Two keys of one peer, or of the broker, for as long as it takes to change from one to the other."""

from __future__ import annotations

from pathlib import Path

import pytest

from specwire.runtime.norfab.security.keyring import NEXT, Keyring
from specwire.runtime.norfab.security.table import Peer, Table
from specwire.runtime.norfab.security.tablefile import AccessError, load_table
from specwire.runtime.transport.keys import load_public_key, make_keys

KEYS = ("a" * 40, "b" * 40, "c" * 40)


def test_a_peer_comes_in_by_either_key() -> None:
    ada = Peer(name="ada", key=KEYS[0], roles=("client",), call=("*",), next_key=KEYS[1])
    assert Table([ada]).names == {KEYS[0]: "ada", KEYS[1]: "ada"}
    with pytest.raises(ValueError, match="peer 'bob': the key is that of 'ada' too"):
        Table([ada, Peer(name="bob", key=KEYS[1], roles=("admin",))])


def test_a_table_has_the_next_key_as_it_has_the_first(tmp_path: Path) -> None:
    public = [load_public_key(make_keys(tmp_path, name)[0]) for name in ("ada", "ada2")]
    file = tmp_path / "access.toml"
    file.write_text(f'[ada]\nkey = "{public[0]}"\nnext-key = "ada2.key"\nroles = ["admin"]\n')
    assert load_table(file).names == dict.fromkeys(public, "ada")
    file.write_text(f'[ada]\nkey = "{public[0]}"\nnext-key = 3\nroles = ["admin"]\n')
    with pytest.raises(AccessError, match="next-key"):
        load_table(file)


def test_a_peer_expects_the_next_key_of_the_broker_where_it_has_it(tmp_path: Path) -> None:
    ring = Keyring(tmp_path)
    ring.prepare()
    assert ring.peer("client").other_server_keys == ()
    following = load_public_key(make_keys(tmp_path, NEXT)[0])
    assert ring.peer("client").other_server_keys == (following,)
    with pytest.raises(AccessError, match="a peer cannot be called"):
        ring.add(Peer(name=NEXT, key="", roles=("admin",)))
