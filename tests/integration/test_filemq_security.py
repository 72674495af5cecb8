"""FILEMQ over CURVE and PLAIN on real sockets: who gets which files, and who gets nothing."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path

import pytest
import zmq

from specwire.generated.filemq import Ohai
from specwire.runtime.filemq import FilemqClient, FilemqServer, Publication
from specwire.runtime.filemq.access import Client, Clients, ClientSecurity, ServerSecurity
from specwire.runtime.filemq.events import PeerClosed, PeerOpened
from specwire.runtime.kernel.log import LogEvent, Refused
from specwire.runtime.transport.errors import ExposureError, TransportError
from specwire.runtime.transport.keys import KeyPair, make_keys
from specwire.runtime.transport.security import NULL, CurveClient, CurveServer, PlainClient, PlainServer
from tests.integration.test_filemq_command import line_with, process
from tests.runtime.cli.commands import specwire
from tests.runtime.filemq.test_access import new_key

TIMEOUT_S = 60.0
BRISK = {"heartbeat": 0.05, "expiry": 30.0, "reconnect": 0.05}
HIDDEN = ".specwire-inbox"
TREE = {"/photos/a": b"a", "/photos/deep/b": b"b", "/photos2/c": b"c", "/docs/d": b"d", "/e": b"e"}


def new_pair() -> KeyPair:
    public, secret = zmq.curve_keypair()
    return KeyPair(public.decode(), secret.decode())


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    for name, content in TREE.items():
        path = folder / name[1:]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def run(story: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(2 * TIMEOUT_S):
            await story()

    asyncio.run(bounded())


def serving(
    source: Path,
    security: ServerSecurity,
    clients: Clients | None = None,
    endpoint: str = "tcp://127.0.0.1:*",
) -> FilemqServer:
    return FilemqServer([Publication(source)], endpoint, security=security, clients=clients)


def reading(
    server: FilemqServer,
    inbox: Path,
    *paths: str,
    security: ClientSecurity,
    timers: Mapping[str, float] | None = None,
) -> FilemqClient:
    return FilemqClient(server.endpoint, inbox, paths, security=security, timers=timers, sync=False)


async def await_event(watch: AsyncIterator[LogEvent], wanted: Callable[[LogEvent], bool]) -> LogEvent:
    async for event in watch:
        if wanted(event):
            return event
    raise AssertionError("the service stopped before the event came")


async def refused_for(watch: AsyncIterator[LogEvent], name: str) -> Refused:
    event = await await_event(watch, lambda e: isinstance(e, Refused) and e.name == name)
    assert isinstance(event, Refused)
    return event


async def receives(server: FilemqServer, client: FilemqClient, path: str) -> None:
    """The client's inbox comes to hold exactly what is published under `path`."""
    expected = server.digests(path)
    assert expected
    await client.until_equal(expected, timeout_s=TIMEOUT_S)


def read_tree(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and HIDDEN not in path.parts)
    return {"/" + str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_each_client_gets_the_paths_that_it_may_have(tmp_path: Path, source: Path) -> None:
    """Two clients with a path each, also of files that come later; outside it a client is told SRSLY and ends."""
    keys, a, b = new_pair(), new_pair(), new_pair()
    clients = Clients([Client("a", ("/photos",), key=a.public), Client("b", ("/docs",), key=b.public)])

    async def story() -> None:
        async with serving(source, CurveServer(keys), clients) as server:
            watch = server.events()
            as_a, as_b = CurveClient(a, keys.public), CurveClient(b, keys.public)
            async with (
                reading(server, tmp_path / "a", "/photos", security=as_a) as first,
                reading(server, tmp_path / "b", "/docs", security=as_b) as second,
            ):
                opened = [await await_event(watch, lambda e: isinstance(e, PeerOpened)) for _ in range(2)]
                assert {e.user for e in opened if isinstance(e, PeerOpened)} == {"a", "b"}
                (source / "photos/later").write_bytes(b"1")
                (source / "docs/later").write_bytes(b"2")
                await server.rescan()
                await receives(server, first, "/photos")
                await receives(server, second, "/docs")
                for path in ("/docs", "/photos2", "/"):
                    async with reading(server, tmp_path / "x", path, security=as_a) as greedy:
                        reason = await greedy.finished
                        assert f"{path} is not permitted to 'a'" in reason
                    assert (await refused_for(watch, path)).reason == "is not permitted to 'a'"
        assert read_tree(tmp_path / "x") == {}
        assert set(read_tree(tmp_path / "a")) == {"/photos/a", "/photos/deep/b", "/photos/later"}
        assert set(read_tree(tmp_path / "b")) == {"/docs/d", "/docs/later"}

    run(story)


def test_an_unknown_key_gets_nothing_and_is_logged_once(tmp_path: Path, source: Path) -> None:
    """One refusal for the one connection, counted; the server hears no message of it and serves the others."""
    keys, friend, stranger = new_pair(), new_pair(), new_pair()
    clients = Clients([Client("friend", ("/",), key=friend.public)])

    async def story() -> None:
        async with serving(source, CurveServer(keys), clients) as server:
            watch = server.events()
            as_stranger = CurveClient(stranger, keys.public)
            once = {"reconnect": 2 * TIMEOUT_S}
            async with reading(server, tmp_path / "x", "/", security=as_stranger, timers=once) as kept_out:
                refused = await refused_for(watch, "a client")
                assert stranger.public in refused.reason
                async with reading(
                    server, tmp_path / "a", "/", security=CurveClient(friend, keys.public)
                ) as let_in:
                    await receives(server, let_in, "/")
                assert kept_out.counters.messages_in == 0
                assert server.counters.refusals == 1
                assert server.counters.peerings == 1
        assert read_tree(tmp_path / "x") == {}
        assert read_tree(tmp_path / "a") == TREE

    run(story)


def test_without_a_list_the_servers_key_is_enough(tmp_path: Path, source: Path) -> None:
    keys, anyone = new_pair(), new_pair()

    async def story() -> None:
        async with serving(source, CurveServer(keys)) as server:
            watch = server.events()
            async with reading(
                server, tmp_path / "a", "/", security=CurveClient(anyone, keys.public)
            ) as client:
                await receives(server, client, "/")
            opened = await await_event(watch, lambda e: isinstance(e, PeerOpened))
            assert isinstance(opened, PeerOpened) and opened.user == anyone.public

    run(story)


@pytest.mark.parametrize(
    ("wrong", "told_client", "told_server"),
    [
        ("key", "keys or mechanisms may not fit", "the keys of the two sides do not fit"),
        ("nothing", "mechanisms", "handshake"),  # who is the first to notice it differs: one breaks off,
        ("password", "mechanisms", "handshake"),  # and the other may know no more than that
    ],
)
def test_a_client_whose_security_does_not_fit_says_so_and_tries_again(
    tmp_path: Path, source: Path, wrong: str, told_client: str, told_server: str
) -> None:
    """Twice the same, so it goes on; and nothing arrives from a server that is not the one expected.

    The server tells of it too, though it was never asked to let this client in.
    """
    keys = new_pair()
    securities: dict[str, ClientSecurity] = {
        "key": CurveClient(new_pair(), new_key()),
        "nothing": NULL,
        "password": PlainClient("ada", "lovelace"),
    }

    async def story() -> None:
        async with serving(source, CurveServer(keys)) as server:
            client = reading(server, tmp_path / "x", "/", security=securities[wrong], timers=BRISK)
            watch, seen = client.events(), server.events()
            async with client:
                for _ in range(2):
                    closed = await await_event(watch, lambda e: isinstance(e, PeerClosed))
                    assert isinstance(closed, PeerClosed) and not closed.final
                    assert told_client in closed.reason
                    assert told_server in (await refused_for(seen, "a client")).reason
            assert client.counters.messages_in == 0
            assert server.counters.messages_in == 0

    run(story)


def test_passwords_and_their_paths(tmp_path: Path, source: Path) -> None:
    clients = Clients([Client("ada", ("/photos",), password="lovelace")])

    async def story() -> None:
        async with serving(source, PlainServer(), clients) as server:
            watch = server.events()
            wrong = PlainClient("ada", "byron")
            async with reading(server, tmp_path / "x", "/photos", security=wrong) as kept_out:
                assert (
                    "'ada' with that password is not known" in (await refused_for(watch, "a client")).reason
                )
                right = PlainClient("ada", "lovelace")
                async with reading(server, tmp_path / "a", "/photos", security=right) as let_in:
                    await receives(server, let_in, "/photos")
                async with reading(server, tmp_path / "y", "/docs", security=right) as greedy:
                    assert "/docs is not permitted to 'ada'" in await greedy.finished
                assert kept_out.counters.messages_in == 0
        assert set(read_tree(tmp_path / "a")) == {"/photos/a", "/photos/deep/b"}
        assert read_tree(tmp_path / "x") == read_tree(tmp_path / "y") == {}

    run(story)


def test_a_routing_id_that_was_anothers_gives_no_access(source: Path) -> None:
    """A client that takes the routing id of one that left is a new client under its own name."""
    keys, a, b = new_pair(), new_pair(), new_pair()
    clients = Clients([Client("a", ("/photos",), key=a.public), Client("b", ("/docs",), key=b.public)])

    async def story() -> None:
        async with serving(source, CurveServer(keys), clients) as server:
            watch = server.events()
            for pair, name in ((a, "a"), (b, "b")):
                await asyncio.to_thread(say_ohai, server.endpoint, pair, keys.public)
                opened = await await_event(watch, lambda e: isinstance(e, PeerOpened))
                assert opened == PeerOpened(b"chosen".hex(), name)
            assert server.clients == 1

    run(story)


def say_ohai(endpoint: str, pair: KeyPair, server_key: str) -> None:
    """Open a peering under the routing id ``chosen``, and leave without a goodbye."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    socket = context.socket(zmq.DEALER)
    try:
        socket.setsockopt(zmq.ROUTING_ID, b"chosen")
        socket.setsockopt_string(zmq.CURVE_PUBLICKEY, pair.public)
        socket.setsockopt_string(zmq.CURVE_SECRETKEY, pair.secret)
        socket.setsockopt_string(zmq.CURVE_SERVERKEY, server_key)
        socket.connect(endpoint)
        deadline_ms = int(TIMEOUT_S * 1000)
        socket.send_multipart(Ohai().encode())
        assert socket.poll(deadline_ms), "no answer to OHAI"
    finally:
        socket.close(linger=0)
        context.term()


# ---- what is open to others


@pytest.mark.parametrize("security", [NULL, PlainServer()], ids=["NULL", "PLAIN"])
def test_beyond_this_machine_only_with_curve_or_on_demand(source: Path, security: ServerSecurity) -> None:
    clients = Clients([Client("ada", ("/",), password="x")]) if security != NULL else None
    everywhere = "tcp://*:*"

    async def story() -> None:
        server = serving(source, security, clients, everywhere)
        with pytest.raises(ExposureError, match="--insecure"):
            async with server:
                pass
        assert server.endpoint == everywhere
        insecure = FilemqServer(
            [Publication(source)], everywhere, security=security, clients=clients, insecure=True
        )
        async with insecure:
            assert insecure.endpoint.startswith("tcp://0.0.0.0:")
        async with serving(source, CurveServer(new_pair()), None, everywhere) as encrypted:
            assert encrypted.endpoint.startswith("tcp://0.0.0.0:")

    run(story)


def test_a_guarded_server_that_cannot_listen_lets_go_of_everything(source: Path) -> None:
    """The guard has a socket of its own, which must not keep the context from ending; later the start succeeds."""

    async def story() -> None:
        async with serving(source, CurveServer(new_pair())) as server:
            second = serving(source, CurveServer(new_pair()), None, server.endpoint)
            with pytest.raises(TransportError, match="cannot listen on"):
                await second.start()
        async with second:
            assert second.endpoint == server.endpoint

    run(story)


def test_keys_that_are_none_are_told_at_the_start(tmp_path: Path, source: Path) -> None:
    async def story() -> None:
        broken = KeyPair("short", "short")
        with pytest.raises(TransportError, match="CURVE keys, each of 40 characters"):
            await serving(source, CurveServer(broken)).start()
        client = FilemqClient(
            "tcp://127.0.0.1:1", tmp_path / "x", ["/"], security=CurveClient(broken, new_key())
        )
        with pytest.raises(TransportError, match="CURVE keys, each of 40 characters"):
            await client.start()

    run(story)


def test_a_list_without_proof_is_refused_at_once(source: Path) -> None:
    with pytest.raises(ValueError, match="needs CURVE or PLAIN"):
        serving(source, NULL, Clients([Client("a", ("/",), key=new_key())]))


# ---- the command line


def test_commands_with_curve(tmp_path: Path, source: Path) -> None:
    """Key files and a list as a user makes them; a key that is not listed is in the server's log."""
    (server_public, server_secret) = make_keys(tmp_path, "server")
    (_, site_secret), (_, other_secret) = make_keys(tmp_path, "site-b"), make_keys(tmp_path, "other")
    listed = tmp_path / "clients.toml"
    listed.write_text('[site-b]\nkey = "site-b.key"\npaths = ["/photos"]\n')

    async def story() -> None:
        guard = ("--curve", str(server_secret), "--clients", str(listed))
        async with process("serve", str(source), "--endpoint", "tcp://*:*", *guard) as server:
            endpoint = (
                (await line_with(server, "serving 5 files on")).split()[-1].replace("0.0.0.0", "127.0.0.1")
            )
            proof = ("--server-key", str(server_public), "--curve")
            common = ("subscribe", endpoint, "/photos", "--inbox")
            async with process(*common, str(tmp_path / "x"), *proof, str(other_secret)):
                assert "is not in the list of clients" in await line_with(server, "refused a client")
            async with process(*common, str(tmp_path / "a"), *proof, str(site_secret)) as client:
                await line_with(client, "received /photos/deep/b")
                assert "(user site-b)" in await line_with(server, "connected with")
            denied = ("subscribe", endpoint, "/docs", "--inbox", str(tmp_path / "y"))
            async with process(*denied, *proof, str(site_secret)) as client:
                await line_with(client, "/docs is not permitted to 'site-b'")
                assert await client.wait() == 1

    asyncio.run(story())
    assert read_tree(tmp_path / "x") == {}


def test_commands_with_passwords(tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed, word = tmp_path / "passwords.toml", tmp_path / "word"
    listed.write_text('[ada]\npassword = "lovelace"\npaths = ["/"]\n')
    word.write_text("lovelace\n")
    for file in (listed, word):
        os.chmod(file, 0o600)
    monkeypatch.setenv("SPECWIRE_PASSWORD", "lovelace")

    async def story() -> None:
        async with process(
            "serve", str(source), "--endpoint", "tcp://127.0.0.1:*", "--plain", str(listed)
        ) as server:
            endpoint = (await line_with(server, "serving 5 files on")).split()[-1]
            for inbox, given in (("a", ()), ("b", ("--password-file", str(word)))):
                arguments = ("subscribe", endpoint, "/", "--inbox", str(tmp_path / inbox), "--user", "ada")
                async with process(*arguments, *given) as client:
                    await line_with(client, "received")

    asyncio.run(story())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ("serve", "{tmp}/source", "--endpoint", "tcp://*:0"),
            "tcp://*:0 would be open to anybody: use CURVE",
        ),
        (("serve", "{tmp}/source", "--clients", "{tmp}/clients"), "clients needs curve"),
        (("serve", "{tmp}/source", "--curve", "{tmp}/none"), "none cannot be read"),
        (("serve", "{tmp}/source", "--plain", "{tmp}/source/e"), "chmod 600"),
        (
            ("subscribe", "tcp://127.0.0.1:1", "/", "--inbox", "{tmp}/a", "--server-key", "0" * 40),
            "server-key go together",
        ),
        (("subscribe", "tcp://127.0.0.1:1", "/", "--inbox", "{tmp}/a", "--user", "ada"), "SPECWIRE_PASSWORD"),
    ],
)
def test_user_errors_are_one_sentence(
    tmp_path: Path,
    source: Path,
    arguments: tuple[str, ...],
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "clients").write_text(f"[a]\nkey = '{'0' * 40}'\npaths = ['/']\n")
    filled = [argument.replace("{tmp}", str(tmp_path)) for argument in arguments]
    monkeypatch.delenv("SPECWIRE_PASSWORD", raising=False)
    done = specwire(capfd, "filemq", *filled)
    assert sentence in done.err
    assert "Traceback" not in done.err
    assert len(done.err.splitlines()) == 1
    assert done.status == 2


def test_served_beyond_this_machine_when_told_so(source: Path) -> None:
    async def story() -> None:
        async with process("serve", str(source), "--endpoint", "tcp://*:0", "--insecure") as server:
            assert "tcp://0.0.0.0:" in await line_with(server, "serving 5 files on")

    asyncio.run(story())
