"""`specwire norfab broker` and `keys`: what they make, and what they say where they cannot go on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from specwire.runtime.cli.main import main


def called(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Return exit status, standard output and standard error of a command."""
    with pytest.raises(SystemExit) as ended:
        main(["norfab", *arguments])
    told = capsys.readouterr()
    code = ended.value.code
    return (code if isinstance(code, int) else 0), told.out, told.err


def test_keys_for_a_new_peer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The first call makes what a broker needs too; the table has the peer with its rights."""
    call = ("keys", "ada", "--folder", str(tmp_path), "--role", "client", "--call", "net*:show_*", "--json")
    status, out, _ = called(capsys, *call)
    assert status == 0
    assert [row["name"] for row in json.loads(out)] == ["admin", "client", "worker", "ada"]
    assert json.loads(out)[3]["secret"] == str(tmp_path / "keys/ada.key_secret")
    assert 'call = ["net*:show_*"]' in (tmp_path / "keys/access.toml").read_text()
    status, _, error = called(capsys, *call)
    assert status == 2
    assert "has a peer 'ada' already" in error


def test_keys_without_a_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a broker needs is made once."""
    assert "broker.key_secret" not in called(capsys, "keys", "--folder", str(tmp_path))[1]
    assert (tmp_path / "keys/broker.key_secret").exists()
    assert "everything that a broker needs" in called(capsys, "keys", "--folder", str(tmp_path))[1].replace(
        "\n", " "
    )


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (("ada", "--role", "king"), "there is no role 'king'"),
        (("ada",), "no role"),
        (("ada", "--role", "worker"), "needs serve"),
        (("broker", "--role", "admin"), "cannot be called 'broker'"),
        (("../x", "--role", "admin"), "cannot be called"),
    ],
)
def test_peers_that_cannot_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], fault: str
) -> None:
    """A sentence, exit status 2, and no key."""
    status, _, error = called(capsys, "keys", "--folder", str(tmp_path), *arguments)
    assert status == 2
    assert fault in error
    assert not list(tmp_path.glob("**/ada*"))


@pytest.mark.parametrize(
    ("arguments", "status", "fault"),
    [
        (("--insecure", "--access", "x.toml"), 2, "--insecure does without"),
        (("--access", "none.toml"), 2, "none.toml cannot be read"),
        (("--durability", "paper"), 2, "paper"),
        (("--insecure", "--endpoint", "tcp://127.0.0.1:99999"), 2, "the highest is 65535"),
        (("--insecure", "--endpoint", "127.0.0.1:5555"), 2, "tcp://HOST:PORT or ipc://PATH"),
        (("--insecure", "--endpoint", "tcp://*:*", "--back", "tcp://a"), 2, "names no port"),
        (("--insecure", "--capture", __file__), 2, "is not a folder"),
        (("--keepalive", "0"), 2, "keepalive"),
    ],
)
def test_brokers_that_cannot_begin(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    status: int,
    fault: str,
) -> None:
    """Each ends with its reason."""
    ended, _, error = called(capsys, "broker", "--folder", str(tmp_path), *arguments)
    assert (ended, fault in error) == (status, True), error
