"""CURVE on a live broker: only known keys come in, each under its own names, and each with its own rights."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from specwire.runtime.norfab import commands
from specwire.runtime.norfab.events import Refused
from specwire.runtime.norfab.security.keyring import Keyring
from specwire.runtime.norfab.security.owninventory import OwnInventory
from specwire.runtime.norfab.security.table import Peer, Table
from specwire.runtime.norfab.serve import NorfabBroker
from specwire.runtime.norfab.serve.events import TurnedAway
from specwire.runtime.transport.keys import KeyPair, load_keys, make_keys
from specwire.runtime.transport.security import NULL, CurveClient, Security
from tests.integration.norfab_scene import Crowd, Heard, RawPeer, crowd_at, run, serving_broker

PEERS = (
    Peer(name="ada", key="", roles=("client",), call=("svc:add", "sid.service.broker")),
    Peer(name="bob", key="", roles=("client",), call=("*",), see=("ada",), manage=("show_*",)),
    Peer(name="w1", key="", roles=("worker",), serve=("svc",)),
    Peer(name="site", key="", roles=("worker",), serve=("s*",), names=("site-*",)),
    Peer(name="root", key="", roles=("admin",)),
)


class Inventory:
    """Has the same secret for everybody."""

    async def perform(self, task: str, args: bytes, kwargs: bytes, user: str) -> tuple[int, bytes]:
        """Tell it."""
        return 200, b'{"password":"secret"}'


class Scene:
    """A guarded broker, and peers that prove who they are."""

    def __init__(self, ring: Keyring, peers: list[Peer], table: Table, crowd: Crowd, heard: Heard) -> None:
        self.ring, self.peers, self.table, self.crowd, self.heard = ring, peers, table, crowd, heard

    def client(self, user: str, name: str = "") -> RawPeer:
        """Return a client with the key of `user`."""
        return self.crowd.client(name or user, security=self.ring.peer(user))

    def worker(self, user: str, name: str = "") -> RawPeer:
        """Return a worker with the key of `user`."""
        return self.crowd.worker(name or user, security=self.ring.peer(user))


@asynccontextmanager
async def guarded(folder: Path) -> AsyncIterator[Scene]:
    """Run a broker that knows `PEERS`."""
    ring = Keyring(folder / "keys")
    ring.prepare()
    peers = [ring.add(peer) for peer in PEERS]
    heard, table = Heard(), ring.table()
    services = {"sid.service.broker": OwnInventory(Inventory(), table)}
    async with (
        serving_broker(folder, heard=heard, security=ring.server(), access=table, services=services) as (
            broker,
            _,
        ),
        crowd_at(broker.endpoints[0]) as crowd,
    ):
        yield Scene(ring, peers, table, crowd, heard)


def test_known_keys_work_together(tmp_path: Path) -> None:
    """A job of a known client at a known worker."""

    async def story() -> None:
        async with guarded(tmp_path) as scene:
            worker, client = scene.worker("w1"), scene.client("ada")
            await worker.register()
            client.post("j1")
            worker.end_job(await worker.take_job())
            await client.answer("j1", 200)

    run(story)


def stranger_keys(folder: Path) -> KeyPair:
    """Return keys that nobody knows."""
    return load_keys(make_keys(folder, "stranger")[1])


@pytest.mark.parametrize("kind", ["stranger", "null", "wrong server"])
def test_others_do_not_come_in(tmp_path: Path, kind: str) -> None:
    """A random key (the real broker takes any), no key at all, and a wrong idea of the broker's key: nobody gets in."""

    async def story() -> None:
        async with guarded(tmp_path) as scene:
            known = scene.ring.peer("ada")
            security: Security = NULL
            if kind == "stranger":
                security = CurveClient(stranger_keys(tmp_path), known.server_key)
            elif kind == "wrong server":
                security = CurveClient(known.keys, stranger_keys(tmp_path).public)
            peer = scene.crowd.client("ada", security=security)
            peer.say(commands.Open())
            await scene.heard.until(TurnedAway)
            assert not any(isinstance(command, commands.Open) for command in peer.got)

    run(story)


@pytest.mark.parametrize(
    ("user", "name"), [("ada", "w1"), ("w1", "w2"), ("site", "site"), ("site", "w1")], ids=str
)
def test_workers_register_under_their_own_names_alone(tmp_path: Path, user: str, name: str) -> None:
    """A client's key registers nobody, and a worker's key nobody else."""

    async def story() -> None:
        async with guarded(tmp_path) as scene:
            scene.worker(user, name).say(commands.Ready("svc"))
            refused = await scene.heard.until(Refused)
            assert refused.peer == name.encode()
            root = scene.client("root")
            assert await root.manage("show_workers") == [{"name": "", "service": "", "status": ""}]

    run(story)


def test_worker_offers_its_own_services_alone(tmp_path: Path) -> None:
    """READY for another service is answered with DISCONNECT; patterns are understood."""

    async def story() -> None:
        async with guarded(tmp_path) as scene:
            worker = scene.worker("w1")
            worker.say(commands.Ready("other"))
            await worker.hear(commands.Disconnect)
            site = scene.worker("site", "site-7")
            await site.register("switches")

    run(story)


def test_clients_call_what_they_may(tmp_path: Path) -> None:
    """Another task, another service, and management are refused with a reason."""

    async def story() -> None:
        async with guarded(tmp_path) as scene:
            worker, ada = scene.worker("w1"), scene.client("ada")
            await worker.register()
            ada.post("j1", task="remove")
            assert "may not call 'remove'" in (await ada.answer("j1", 400))["errors"][0]
            ada.post("j2", service="other")
            await ada.answer("j2", 400)
            assert "may not use 'shutdown'" in (await ada.manage("shutdown"))["errors"][0]
            bob = scene.client("bob")
            assert [row["name"] for row in await bob.manage("show_workers")] == ["w1"]
            assert "errors" in await bob.manage("restart", uuid="m2")

    run(story)


def test_jobs_are_seen_by_those_who_may(tmp_path: Path) -> None:
    """Its owner, an admin and a client that is told so get the result of a job; others do not learn that there is one."""

    async def story() -> None:
        async with guarded(tmp_path) as scene:
            worker, bob = scene.worker("w1"), scene.client("bob")
            await worker.register()
            bob.post("secret", task="add")
            worker.end_job(await worker.take_job(), "hidden")
            await bob.answer("secret", 200)
            ada, root = scene.client("ada"), scene.client("root")
            ada.say(commands.Get("secret", b"{}", "svc", "all"))
            reply = await ada.hear(commands.Response, lambda reply: reply.status >= 400)
            assert b"hidden" not in reply.body
            ada.post("secret")
            reply = await ada.hear(commands.Response, lambda reply: reply.status >= 400)
            assert b"hidden" not in reply.body
            ada.say(commands.Delete("secret", b"{}", "svc", "all"))
            await ada.hear(commands.Response, lambda reply: reply.status >= 400)
            root.say(commands.Get("secret", b"{}", "svc", "all"))
            assert (await root.answer("secret", 200))["w1"]["result"] == "hidden"
            ada.post("adas")
            worker.end_job(await worker.take_job(), "of ada")
            await ada.answer("adas", 200)
            bob.say(commands.Get("adas", b"{}", "svc", "all"))
            assert (await bob.answer("adas", 200))["w1"]["result"] == "of ada"

    run(story)


def test_client_cannot_come_in_under_the_name_of_another(tmp_path: Path) -> None:
    """A routing id that is not its own gets no answer: results for that name are somebody else's."""

    async def story() -> None:
        async with guarded(tmp_path) as scene:
            false, true = scene.client("ada", "bob"), scene.client("ada", "ada-laptop")
            false.say(commands.Open())
            refused = await scene.heard.until(Refused)
            assert refused.peer == b"bob"
            assert "ada may not come in under this name" in refused.reason
            true.say(commands.Open())
            await true.hear(commands.Open)
            assert false.got == []

    run(story)


def test_inventory_is_given_to_its_owner(tmp_path: Path) -> None:
    """A worker gets its own inventory, an admin any, and another client none."""

    async def asked(peer: RawPeer, name: str) -> int:
        body = json.dumps({"task": "get_inventory", "kwargs": {"name": name}, "args": []}).encode()
        peer.say(commands.Post(f"of-{name}", body, "sid.service.broker", "all"))
        reply = await peer.hear(commands.Response)
        assert (reply.status == 200) == (b"secret" in reply.body)
        return int(reply.status)

    async def story() -> None:
        async with guarded(tmp_path) as scene:
            assert await asked(scene.client("w1", "w1-inventory"), "w1") == 200
            assert await asked(scene.client("w1", "w1-again"), "w2") == 400
            assert await asked(scene.client("ada"), "w1") == 400
            assert await asked(scene.client("root"), "w1") == 200

    run(story)


def test_keys_and_table_belong_together(tmp_path: Path) -> None:
    """CURVE without a table would let anybody in, a table without CURVE nobody."""
    ring = Keyring(tmp_path)
    ring.prepare()
    with pytest.raises(ValueError, match="lets anybody in"):
        NorfabBroker(folder=tmp_path, security=ring.server())
    with pytest.raises(ValueError, match="needs CURVE"):
        NorfabBroker(folder=tmp_path, access=ring.table())


def test_peer_that_is_taken_out_of_the_table_can_do_nothing(tmp_path: Path) -> None:
    """A table that changes while the broker runs takes effect at the next message."""

    async def story() -> None:
        async with guarded(tmp_path) as scene:
            worker, ada = scene.worker("w1"), scene.client("ada")
            await worker.register()
            ada.post("j1")
            worker.end_job(await worker.take_job())
            await ada.answer("j1", 200)
            scene.table.become(Table([peer for peer in scene.peers if peer.name != "ada"]))
            ada.post("j2")
            assert (await scene.heard.until(Refused)).peer == b"ada"

    run(story)
