"""Who may connect: keys in files, CURVE and PLAIN over loopback, and what must not be open to others."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import zmq
import zmq.auth

from specwire.runtime.transport.context import TransportContext
from specwire.runtime.transport.dealer import Dealer
from specwire.runtime.transport.errors import TransportError
from specwire.runtime.transport.guard import Guard
from specwire.runtime.transport.keys import KeyFileError, KeyPair, load_keys, load_public_key, make_keys
from specwire.runtime.transport.link import OnMessages
from specwire.runtime.transport.messages import PureMessages
from specwire.runtime.transport.router import Router
from specwire.runtime.transport.security import (
    NULL,
    CurveClient,
    CurveServer,
    Null,
    PlainClient,
    PlainServer,
    Security,
    is_exposed,
    refuse_exposure,
)

TIMEOUT_S = 60.0


def new_pair() -> KeyPair:
    public, secret = zmq.curve_keypair()
    return KeyPair(public.decode(), secret.decode())


class Gate:
    """A guarded router: what it heard and from whom, and whom its guard turned away."""

    def __init__(
        self,
        security: Security,
        *,
        names: Mapping[str, str] | None = None,
        any_key: bool = False,
        passwords: Mapping[str, str] | None = None,
        on_messages: OnMessages | None = None,
    ) -> None:
        self.context = TransportContext()
        self.heard: asyncio.Queue[tuple[str, list[bytes]]] = asyncio.Queue()
        self.refused: asyncio.Queue[str] = asyncio.Queue()
        self.guard = Guard(
            self.context,
            names=names,
            any_key=any_key,
            passwords=passwords,
            on_refused=self.refused.put_nowait,
        )
        self.guard.start()
        self.router = Router(
            self.context,
            on_message=None if on_messages is not None else self._hear,
            on_messages=on_messages,
            on_sent=lambda peer, frames: None,
            on_room=lambda peer: None,
            on_gone=lambda peer, reason: None,
            security=security,
        )
        self.endpoint = self.router.bind("tcp://127.0.0.1:*")
        self.dealers: list[Dealer] = []

    def _hear(self, peer: bytes, frames: list[bytes]) -> None:
        self.heard.put_nowait((self.router.user, frames))

    def knock(self, security: Security, word: bytes) -> None:
        """Connect a client and let it say one word."""
        dealer = Dealer(
            self.context,
            self.endpoint,
            on_message=lambda frames: None,
            on_sent=lambda frames: None,
            on_lost=lambda reason: None,
            security=security,
        )
        self.dealers.append(dealer)
        dealer.send([word])

    async def close(self) -> None:
        for dealer in self.dealers:
            dealer.close()
        self.router.close()
        self.guard.close()
        await asyncio.wait_for(self.context.close(), TIMEOUT_S)


@asynccontextmanager
async def gate(
    security: Security,
    *,
    names: Mapping[str, str] | None = None,
    any_key: bool = False,
    passwords: Mapping[str, str] | None = None,
    on_messages: OnMessages | None = None,
) -> AsyncIterator[Gate]:
    made = Gate(security, names=names, any_key=any_key, passwords=passwords, on_messages=on_messages)
    try:
        async with asyncio.timeout(TIMEOUT_S):
            yield made
    finally:
        await made.close()


def test_a_listed_key_is_known_by_its_name_and_another_is_turned_away() -> None:
    server, friend, stranger = new_pair(), new_pair(), new_pair()

    async def story() -> None:
        async with gate(CurveServer(server), names={friend.public: "site-b"}) as g:
            g.knock(CurveClient(stranger, server.public), b"let me in")
            assert stranger.public in await g.refused.get()
            g.knock(CurveClient(friend, server.public), b"hello")
            assert await g.heard.get() == ("site-b", [b"hello"])
            assert g.heard.empty()

    asyncio.run(story())


@pytest.mark.parametrize("pure", [False, True], ids=["as built", "pyzmq"])
def test_each_of_the_messages_that_come_together_has_its_user(
    pure: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if pure:
        monkeypatch.setattr("specwire.runtime.transport.link.Messages", PureMessages)
    server, clients = new_pair(), [new_pair() for _ in range(3)]
    heard: list[list[tuple[str, list[bytes]]]] = []

    async def story() -> None:
        async with gate(
            CurveServer(server),
            names={client.public: f"site-{number}" for number, client in enumerate(clients)},
            on_messages=heard.append,
        ) as g:
            for number, client in enumerate(clients):
                g.knock(CurveClient(client, server.public), b"%d" % number)
            while sum(map(len, heard)) < 3:
                await asyncio.sleep(0)
            heard.clear()
            g.router.pause()
            for _ in range(10):
                for number, dealer in enumerate(g.dealers):
                    assert dealer.send([b"%d" % number, b"again"])
            while not g.router.link._messages.readable():
                await asyncio.sleep(0)
            g.router.link.resume()
            while sum(map(len, heard)) < 30:
                await asyncio.sleep(0)
        assert all(user == f"site-{frames[1].decode()}" for messages in heard for user, frames in messages)

    asyncio.run(story())


def test_without_a_list_a_key_is_its_own_name() -> None:
    server, client = new_pair(), new_pair()

    async def story() -> None:
        async with gate(CurveServer(server), any_key=True) as g:
            g.knock(CurveClient(client, server.public), b"hello")
            assert await g.heard.get() == (client.public, [b"hello"])

    asyncio.run(story())


@pytest.mark.parametrize("wrong", [NULL, "server key"], ids=["no CURVE", "another server's key"])
def test_a_client_that_does_not_prove_itself_is_not_heard(wrong: Null | str) -> None:
    server, client = new_pair(), new_pair()

    async def story() -> None:
        async with gate(CurveServer(server), any_key=True) as g:
            g.knock(wrong if isinstance(wrong, Null) else CurveClient(client, new_pair().public), b"hush")
            g.knock(CurveClient(client, server.public), b"first")
            g.knock(CurveClient(client, server.public), b"second")
            # Two handshakes that began later have ended: the first had its time.
            assert {(await g.heard.get())[1][0], (await g.heard.get())[1][0]} == {b"first", b"second"}

    asyncio.run(story())


def test_passwords_are_asked_for() -> None:
    async def story() -> None:
        async with gate(PlainServer(), passwords={"ada": "lovelace"}) as g:
            g.knock(PlainClient("ada", "byron"), b"guess")
            assert "'ada'" in await g.refused.get()
            g.knock(PlainClient("nobody", "x"), b"guess")
            assert "'nobody'" in await g.refused.get()
            g.knock(PlainClient("ada", "lovelace"), b"hello")
            assert await g.heard.get() == ("ada", [b"hello"])

    asyncio.run(story())


@pytest.mark.parametrize(
    "security", [PlainClient("ada", ""), PlainClient("", "x"), PlainClient("x" * 256, "x")]
)
def test_credentials_that_cannot_be_sent_are_refused_at_once(security: Security) -> None:
    async def story() -> None:
        async with gate(PlainServer(), passwords={"ada": "lovelace"}) as g:
            with pytest.raises(TransportError, match="1 to 255 octets"):
                g.knock(security, b"hello")

    asyncio.run(story())


def test_keys_are_made_loaded_and_never_overwritten(tmp_path: Path) -> None:
    public_file, secret_file = make_keys(tmp_path / "keys", "site b")
    pair = load_keys(secret_file)
    # pyzmq reads the same, and libzmq derives the same public key from the secret one.
    assert zmq.auth.load_certificate(secret_file) == (pair.public.encode(), pair.secret.encode())
    assert zmq.curve_public(pair.secret.encode()).decode() == pair.public == load_public_key(public_file)
    assert stat.S_IMODE(secret_file.stat().st_mode) == 0o600
    assert pair.secret.encode() not in public_file.read_bytes()
    assert pair.secret not in repr(pair)
    kept = secret_file.read_bytes()
    with pytest.raises(KeyFileError, match="exists"):
        make_keys(tmp_path / "keys", "site b")
    assert secret_file.read_bytes() == kept


@pytest.mark.parametrize("name", ["", "..", "a/b", "a\0b"])
def test_a_key_has_a_name_that_stays_in_its_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(KeyFileError, match="cannot be the name"):
        make_keys(tmp_path, name)
    assert not list(tmp_path.iterdir())


def test_faulty_key_files_are_told_apart(tmp_path: Path) -> None:
    public_file, secret_file = make_keys(tmp_path, "a")
    with pytest.raises(KeyFileError, match="public key only"):
        load_keys(public_file)
    os.chmod(secret_file, 0o644)
    with pytest.raises(KeyFileError, match="chmod 600"):
        load_keys(secret_file)
    with pytest.raises(KeyFileError, match="no such file"):
        load_keys(tmp_path / "missing.key_secret")
    empty = tmp_path / "empty.key"
    empty.write_text("curve\n")
    with pytest.raises(KeyFileError, match="no CURVE key"):
        load_public_key(empty)
    for bad in ("short", "x" * 39 + "\\", "x" * 41):
        empty.write_text(f'curve\n    public-key = "{bad}"\n')
        with pytest.raises(KeyFileError, match="40 characters"):
            load_public_key(empty)


@pytest.mark.parametrize(
    ("endpoint", "exposed"),
    [
        ("tcp://127.0.0.1:5670", False),
        ("tcp://127.8.9.10:*", False),
        ("tcp://[::1]:5670", False),
        ("tcp://localhost:5670", False),
        ("ipc:///tmp/x", False),
        ("tcp://*:5670", True),
        ("tcp://0.0.0.0:5670", True),
        ("tcp://[::]:5670", True),
        ("tcp://eth0:5670", True),
        ("tcp://192.0.2.1:5670", True),
    ],
)
def test_what_others_can_reach_needs_curve(endpoint: str, exposed: bool) -> None:
    assert is_exposed(endpoint) == exposed
    refuse_exposure(endpoint, CurveServer(new_pair()))
    refuse_exposure(endpoint, NULL, insecure=True)
    for open_kind in (NULL, PlainServer()):
        if exposed:
            with pytest.raises(TransportError, match="--insecure"):
                refuse_exposure(endpoint, open_kind)
        else:
            refuse_exposure(endpoint, open_kind)
