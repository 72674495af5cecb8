"""A list of clients that changes while its server runs: who is new is let in, who is out is told, and no fault counts."""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path

import pytest

from specwire.generated.filemq import Icanhaz, Ohai, Srsly
from specwire.runtime.filemq import FilemqClient, FilemqServer, Publication
from specwire.runtime.filemq.access import Client, Clients, ServerSecurity
from specwire.runtime.filemq.server import ServerState, react
from specwire.runtime.kernel.effects import HostEffect, Send
from specwire.runtime.kernel.engine import StoryEngine
from specwire.runtime.kernel.events import Event, MessageReceived, PeerId, Reloaded
from specwire.runtime.transport.keys import KeyPair, load_keys, make_keys
from specwire.runtime.transport.security import NULL, CurveClient, CurveServer, PlainClient
from tests.integration.filemq_process import running
from tests.integration.filemq_scene import run

TIMEOUT_S = 60.0
BRISK = {"heartbeat": 0.1, "expiry": 30.0, "reconnect": 0.05}
PEER = b"\x00peer"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    for name in ("photos/a", "docs/b"):
        (tmp_path / "source" / name).parent.mkdir(parents=True)
        (tmp_path / "source" / name).write_bytes(name.encode())
    return tmp_path / "source"


def new_pair(folder: Path, name: str) -> KeyPair:
    return load_keys(make_keys(folder, name)[1])


def reading(endpoint: str, inbox: Path, path: str, security: PlainClient | CurveClient) -> FilemqClient:
    return FilemqClient(endpoint, inbox, [path], security=security, timers=BRISK, sync=False)


def test_engine_refuses_what_is_not_allowed_any_more() -> None:
    """The client is told of the first such path, and then not heard any more; others notice nothing."""
    allowed = {("ada", "/a"), ("ada", "/b"), ("bob", "/a")}
    state = ServerState(authorise=lambda user, path: None if (user, path) in allowed else "is not permitted")
    engine = StoryEngine(partial(react, state))

    def happen(event: Event) -> list[HostEffect]:
        return [*engine.handle(event, 0.0)]

    ada, bob = PeerId("clients", PEER), PeerId("clients", b"\x00bob")
    for peer, user, paths in ((ada, "ada", ("/a", "/b")), (bob, "bob", ("/a",))):
        happen(MessageReceived(peer, Ohai(), user))
        for path in paths:
            happen(MessageReceived(peer, Icanhaz(path=path, options=(), cache=()), user))
    assert happen(Reloaded(None)) == []
    allowed.remove(("ada", "/b"))
    sent = [effect for effect in happen(Reloaded(None)) if isinstance(effect, Send)]
    assert sent == [Send(ada, Srsly(reason="/b is not permitted"))]
    assert happen(Reloaded(None)) == [], "once"
    assert happen(MessageReceived(ada, Icanhaz(path="/a", options=(), cache=()), "ada")) == []


def test_curve_keys_that_come_and_go(tmp_path: Path, source: Path) -> None:
    keys, ada, bob = (new_pair(tmp_path, name) for name in ("server", "ada", "bob"))

    async def story() -> None:
        async with FilemqServer(
            [Publication(source)],
            security=CurveServer(keys),
            clients=Clients([Client("ada", ("/photos", "/docs"), key=ada.public)]),
        ) as server:
            proofs = [CurveClient(pair, keys.public) for pair in (ada, bob)]
            async with (
                reading(server.endpoint, tmp_path / "ada", "/docs", proofs[0]) as first,
                reading(server.endpoint, tmp_path / "bob", "/photos", proofs[1]) as second,
            ):
                await first.until_equal(server.digests("/docs"), timeout_s=TIMEOUT_S)
                assert second.counters.messages_in == 0
                both = Clients(
                    [Client("ada", ("/photos",), key=ada.public), Client("bob", ("/photos",), key=bob.public)]
                )
                server.replace_clients(both)
                assert await first.finished == "refused: /docs is not permitted to 'ada'"
                await second.until_equal(server.digests("/photos"), timeout_s=TIMEOUT_S)

    run(story)


def test_list_is_read_again_on_sighup(tmp_path: Path, source: Path) -> None:
    """One that is out is told so; a list that cannot be used is told of in the log, and changes nothing."""
    users = tmp_path / "users.toml"
    users.touch(mode=0o600)
    ada = '[ada]\npassword = "one"\npaths = ["/"]\n'
    bob = '[bob]\npassword = "two"\npaths = ["/photos"]\n'
    users.write_text(ada)

    async def story() -> None:
        arguments = ("serve", str(source), "--endpoint", "tcp://127.0.0.1:*", "--plain", str(users))
        async with running(*arguments) as server:
            endpoint = (await server.line_with("serving 2 files on")).split()[-1]
            async with reading(endpoint, tmp_path / "a", "/docs", PlainClient("ada", "one")) as first:
                await server.line_with("sent /docs/b")
                for times, faulty in enumerate(("[ada", ada.replace("password", "pass"), ""), 1):
                    users.write_text(faulty)
                    os.kill(server.pid, signal.SIGHUP)
                    await server.until_lines("the list of clients stays as it was: ", times)
                users.write_text(bob)
                os.kill(server.pid, signal.SIGHUP)
                await server.line_with("the list of clients was read again: 1 client")
                assert await first.finished == "refused: /docs is not permitted to 'ada'"
            async with reading(endpoint, tmp_path / "b", "/photos", PlainClient("bob", "two")) as second:
                await server.line_with("sent /photos/a")
                assert not second.finished.done()
            await server.stop()

    run(story)


@pytest.mark.parametrize(
    ("known", "sentence"),
    [
        (None, "has no list of clients"),
        (Clients([Client("a", ("/",), password="p")]), "CURVE needs clients with keys"),
    ],
)
def test_a_list_that_does_not_go_with_the_server(
    known: Clients | None, sentence: str, tmp_path: Path, source: Path
) -> None:
    security: ServerSecurity = NULL if known is None else CurveServer(new_pair(tmp_path, "server"))
    listed = None if known is None else Clients([Client("ada", ("/",), key=new_pair(tmp_path, "ada").public)])

    async def story() -> None:
        async with FilemqServer([Publication(source)], security=security, clients=listed) as server:
            with pytest.raises(ValueError, match=sentence):
                server.replace_clients(known or Clients([]))

    run(story)
