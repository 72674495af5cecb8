"""CURVE keys that change while servers run: nobody is started again, and who knows the new key works on."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest

from specwire.runtime.filemq import FilemqClient, FilemqServer, Publication
from specwire.runtime.flux.events import Joined, ParentLost
from specwire.runtime.norfab.client import NorfabClient
from specwire.runtime.norfab.security.keyring import BROKER, NEXT, Keyring
from specwire.runtime.norfab.worker.plugin import find_plugin
from specwire.runtime.norfab.worker.serve import NorfabWorker
from specwire.runtime.transport.keys import KeyPair, load_keys, make_keys
from specwire.runtime.transport.security import CurveClient, CurveServer
from tests.integration import norfab_scene
from tests.integration.filemq_process import running
from tests.integration.filemq_scene import run
from tests.integration.flux_brokers import handles, instance, new_keys, play

pytestmark = pytest.mark.peers

TIMEOUT_S = 60.0
BRISK = {"heartbeat": 0.1, "expiry": 30.0, "reconnect": 0.05}


def new_pair(folder: Path, name: str) -> KeyPair:
    return load_keys(make_keys(folder, name)[1])


def test_filemq_clients_that_know_both_keys_follow(tmp_path: Path) -> None:
    """There and back: the client finds the key that holds, and misses nothing; one that knows one key waits for it."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "a").write_bytes(b"a")
    old, new, both, one = (new_pair(tmp_path, name) for name in ("old", "new", "both", "one"))

    def reading(endpoint: str, name: str, keys: KeyPair, *others: str) -> FilemqClient:
        proof = CurveClient(keys, old.public, others)
        return FilemqClient(endpoint, tmp_path / name, ["/"], security=proof, timers=BRISK, sync=False)

    async def story() -> None:
        async with FilemqServer([Publication(source)], security=CurveServer(old)) as server:
            endpoint = server.endpoint
            async with (
                reading(endpoint, "both", both, new.public) as follows,
                reading(endpoint, "one", one) as waits,
            ):
                for client in (follows, waits):
                    await client.until_equal(server.digests(), timeout_s=TIMEOUT_S)
                await server.change_keys(new)
                assert server.endpoint == endpoint
                (source / "b").write_bytes(b"b")
                await server.rescan()
                await follows.until_equal(server.digests(), timeout_s=TIMEOUT_S)
                assert not (tmp_path / "one" / "b").exists()
                await server.change_keys(old)
                for client in (follows, waits):
                    await client.until_equal(server.digests(), timeout_s=TIMEOUT_S)

    run(story)


def test_a_server_without_keys_has_none_to_change(tmp_path: Path) -> None:
    async def story() -> None:
        async with FilemqServer([Publication(tmp_path)]) as server:
            with pytest.raises(ValueError, match="without CURVE"):
                await server.change_keys(new_keys())

    run(story)


def test_a_filemq_server_takes_its_configuration_at_sighup(tmp_path: Path) -> None:
    """Keys, clients and how much is told, in one file; a fault in it changes nothing."""
    for name in ("old", "new", "site"):
        make_keys(tmp_path, name)
    (tmp_path / "pub").mkdir()
    (tmp_path / "clients.toml").write_text('[site]\nkey = "site.key"\npaths = ["/"]\n')
    file = tmp_path / "specwire.toml"
    text = (
        "[filemq.serve]\n"
        'folders = ["pub"]\nendpoint = "tcp://127.0.0.1:*"\nclients = "clients.toml"\ncurve = "old.key_secret"\n'
    )
    file.write_text(text)

    async def story() -> None:
        async with running(
            "serve", "--config", str(file), "--set", "no-digests=true", "--set", "status=false"
        ) as server:
            await server.line_with("serving 0 files on tcp://127.0.0.1:")
            file.write_text(text + "quit = true\n")
            os.kill(server.pid, signal.SIGHUP)
            await server.line_with(
                "specwire.toml:6: filemq.serve.quit: unknown setting; did you mean 'quiet'?"
            )
            file.write_text(
                text.replace("old.key", "new.key") + "report-every = 0.01\nprotocol = 'libfilemq'\n"
            )
            os.kill(server.pid, signal.SIGHUP)
            await server.line_with("what else has changed holds from the next start on: protocol")
            public = json.dumps(load_keys(tmp_path / "new.key_secret").public)[1:-1]
            await server.line_with(f"who connects has to expect {public}")
            await server.line_with("0 clients with credit")
            await server.stop()

    run(story)


def test_norfab_peers_with_the_next_key_follow(tmp_path: Path) -> None:
    """As docs/how-to/operating.md has it: the next key is made and handed out, and then takes the other's place.

    A job that runs meanwhile ends as it should.
    """
    folder = tmp_path / "broker"
    ring = Keyring(folder / "keys")
    ring.prepare()
    make_keys(ring.folder, NEXT)

    async def story() -> None:
        async with norfab_scene.serving_broker(folder, security=ring.server(), access=ring.table()) as (
            broker,
            _,
        ):
            worker = NorfabWorker(
                broker.endpoints,
                "w1",
                "svc",
                find_plugin("tests.integration.norfab_plugin:Fleet"),
                folder=tmp_path / "w1",
                security=ring.peer("worker"),
            )
            client = NorfabClient(
                broker.endpoints, name="client", folder=tmp_path / "client", security=ring.peer("client")
            )
            async with worker, client:
                before = await client.run("svc", "add", 1, 2, timeout=TIMEOUT_S)
                go = tmp_path / "go"
                begun = asyncio.Event()
                waiting = asyncio.create_task(
                    client.run(
                        "svc", "wait_softly", str(go), timeout=TIMEOUT_S, on_progress=lambda told: begun.set()
                    )
                )
                await begun.wait()
                for suffix in (".key", ".key_secret"):
                    (ring.folder / (NEXT + suffix)).replace(ring.folder / (BROKER + suffix))
                await broker.change_keys(ring.server().keys)
                go.touch()
                during = await waiting
                after = await client.run("svc", "add", 3, 4, timeout=TIMEOUT_S)
                assert [job.results["w1"].result for job in (before, after, during)] == [3, 7, "it is there"]

    norfab_scene.run(story)


def test_a_flux_tree_comes_together_by_other_keys() -> None:
    """Each broker is told for itself; those that are told late come in again when they are."""

    async def story() -> None:
        async with instance(3) as brokers, handles(brokers, 0) as (root,):
            keys = new_keys()
            for rank in (0, 2, 1):
                await brokers.brokers[rank].change_keys(keys)
            for rank in (1, 2):
                await brokers.news[rank].until(ParentLost)
                await brokers.news[rank].until(Joined)
            await brokers.until_status(root, "full")
            for rank in (1, 2):
                assert (await root.rpc("broker.ping", {"x": rank}, nodeid=rank)).json()["x"] == rank
            brokers.keys = keys
            await brokers.stop(2)
            await brokers.start(2)
            await brokers.until_online(2)

    play(story())
