"""Two keys of one client, or of one server, for as long as it takes to change from one to the other."""

from __future__ import annotations

from pathlib import Path

import pytest

from specwire.runtime.filemq.access import AccessError, load_clients, origin_of, read_client_security
from specwire.runtime.transport.keys import load_keys, load_public_key, make_keys
from specwire.runtime.transport.security import CurveClient


@pytest.fixture
def keys(tmp_path: Path) -> dict[str, str]:
    """Return public keys by name; their files are in the folder."""
    return {name: load_public_key(make_keys(tmp_path, name)[0]) for name in ("one", "two", "own")}


def write(folder: Path, text: str) -> Path:
    file = folder / "clients.toml"
    file.write_text(text)
    return file


def test_a_client_comes_in_by_either_key(tmp_path: Path, keys: dict[str, str]) -> None:
    file = write(tmp_path, '[ada]\nkey = "one.key"\nnext-key = "two.key"\npaths = ["/"]\n')
    clients = load_clients(file)
    assert clients.names == {keys["one"]: "ada", keys["two"]: "ada"} and len(clients) == 1


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ('next-key = "none.key"', "none.key cannot be read"),
        ("next-key = 3", "client 'ada': next-key must be a key: next-key = \"...\""),
        (
            'next-key = "two.key"\n[bob]\nkey = "two.key"\npaths = ["/"]',
            "client 'bob': the key is that of 'ada' too",
        ),
    ],
)
def test_a_next_key_that_cannot_be(tmp_path: Path, keys: dict[str, str], lines: str, sentence: str) -> None:
    file = write(tmp_path, f'[ada]\nkey = "one.key"\npaths = ["/"]\n{lines}\n')
    with pytest.raises(AccessError) as caught:
        load_clients(file)
    assert sentence in str(caught.value)


def test_a_subscriber_may_expect_several_keys_and_the_first_names_the_server(
    tmp_path: Path, keys: dict[str, str]
) -> None:
    own = tmp_path / "own.key_secret"
    security = read_client_security(
        curve=own,
        server_key=[str(tmp_path / "one.key"), keys["two"]],
        user=None,
        password_file=None,
        environment={},
    )
    assert security == CurveClient(load_keys(own), keys["one"], (keys["two"],))
    assert origin_of("tcp://127.0.0.1:1", security) == f"curve:{keys['one']}"
