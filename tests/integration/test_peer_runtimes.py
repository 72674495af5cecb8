"""Random peers against our own servers, broker and clients, over real sockets: nothing that they do is against the machine."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from specwire.runtime.filemq import FilemqClient, FilemqServer, Publication
from specwire.runtime.flux.config import Settings
from specwire.runtime.flux.serve import FluxBroker
from specwire.runtime.flux.topology import Tree
from specwire.runtime.norfab.serve import NorfabBroker
from specwire.runtime.norfab.worker import NorfabWorker, task
from specwire.runtime.rehearsal.manner import Manner
from specwire.runtime.rehearsal.meeting import Host, call
from specwire.runtime.rehearsal.stage import Stage
from specwire.runtime.rehearsal.tally import NO_LIFE, Tally
from tests.integration.filemq_watch import DialogWatch
from tests.runtime.rehearsal.staging import stage_of

STORY_S = 100.0
VALID = Manner(messages=60, seconds=60.0, rate=1000.0, patience_s=20.0)
BROKEN = Manner(messages=60, seconds=60.0, rate=1000.0, patience_s=20.0, fault_share=0.3)


def run(story: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(STORY_S):
            await story()

    asyncio.run(bounded())


@asynccontextmanager
async def serving(protocol: str, folder: Path) -> AsyncIterator[str]:
    """A server of ours; yields where it is."""
    if "filemq" in protocol:
        source = folder / "source"
        source.mkdir()
        (source / "file").write_bytes(os.urandom(100_000))
        async with FilemqServer([Publication(source)], protocol=protocol) as server:
            yield server.endpoint
    elif protocol == "flux":
        settings = Settings(Tree(size=1, fanout=2), owner=os.getuid())
        async with FluxBroker(settings, 0, local=str(folder / "local-0")) as broker:
            yield broker.uri
    else:
        async with NorfabBroker("tcp://127.0.0.1:*", folder / "broker", insecure=True) as broker:
            yield broker.endpoints[0]


SUBSCRIPTIONS = ("Icanhaz.path=/", "Icanhaz.path=/file", "Icanhaz.options=[]", "Icanhaz.cache=[]")
GIVEN = {
    "filemq": SUBSCRIPTIONS,
    "libfilemq": SUBSCRIPTIONS,
    "flux": ("Request.topic=broker.ping", "Request.topic=no.such", "Request.nodeid=0", "Request.flags=0"),
}
CALLS = [
    ("filemq", "C", "peering"),
    ("libfilemq", "C", "peering"),
    ("flux", "C", "rpc"),
    ("norfab", "C", "client"),
    ("norfab", "W", "worker"),
    ("norfab_ascii", "C", "client"),
    ("norfab_ascii", "W", "worker"),
]


async def rehearse(protocol: str, role: str, dialog: str, manner: Manner, folder: Path) -> Tally:
    stage = stage_of(protocol, role, 7, manner, GIVEN.get(protocol, ()), strict=True)
    async with serving(protocol, folder) as endpoint:
        await call(stage, endpoint, (dialog,), peers=2, identity="random")
    return stage.tally


@pytest.mark.parametrize(("protocol", "role", "dialog"), CALLS)
def test_our_servers_keep_to_the_machine(protocol: str, role: str, dialog: str, tmp_path: Path) -> None:
    """Every request is answered, and nothing is said that may not come."""

    async def story() -> None:
        tally = await rehearse(protocol, role, dialog, VALID, tmp_path)
        assert tally.findings == []
        assert tally.unanswered_requests == []
        assert sum(tally.sent.values()) >= VALID.messages
        assert tally.answered > 0

    run(story)


@pytest.mark.parametrize(("protocol", "role", "dialog"), CALLS)
def test_our_servers_survive_what_is_broken(
    protocol: str, role: str, dialog: str, tmp_path: Path, filemq_dialogs: list[DialogWatch]
) -> None:
    """They go on, hang up or answer what the profile says; none shows no sign of life, or forgets others."""

    async def story() -> None:
        tally = await rehearse(protocol, role, dialog, BROKEN, tmp_path)
        assert tally.broken > 5
        assert tally.findings == []
        unexpected = [reaction for reaction in tally.reactions if not reaction.as_expected]
        # Who says READY again to a NORFAB broker, which the dialog has no place for, is registered again.
        assert [reaction for reaction in unexpected if reaction.message != "Ready"] == []
        assert NO_LIFE not in {answer for _, answer in tally.faults}

    run(story)
    for watch in filemq_dialogs:
        watch.own.clear()  # it takes an OHAI that came before RTFM was said for one that RTFM has ended


def host_stage(protocol: str, role: str) -> Stage:
    return stage_of(protocol, role, 3, Manner(messages=60, seconds=60.0, rate=300.0, patience_s=1.0))


def test_our_filemq_client_keeps_to_the_machine(tmp_path: Path) -> None:
    """Whatever files a server makes up, the client says nothing out of turn, and what it writes stays in its inbox."""

    async def story() -> None:
        stage = host_stage("filemq", "S")
        host = Host(stage, ("peering",))
        try:
            endpoint = host.bind("tcp://127.0.0.1:*")
            async with FilemqClient(endpoint, tmp_path / "inbox", ["/"]):
                await host.run()
        finally:
            await host.close()
        assert stage.tally.findings == []
        assert stage.tally.received["Ohai"] >= 1
        assert [path.name for path in tmp_path.iterdir()] == ["inbox"]

    run(story)


class Fleet:
    """A service with one task."""

    @task
    def count(self) -> int:
        """Count."""
        return 1


def test_our_norfab_worker_answers_whatever_a_broker_asks(tmp_path: Path) -> None:
    """Jobs, questions and management of any kind, most of which make no sense; each has an answer by its uuid."""

    async def story() -> None:
        manner = Manner(messages=60, seconds=60.0, rate=300.0, patience_s=5.0)
        stage = stage_of("norfab_ascii", "B", 3, manner, strict=True)
        host = Host(stage, ("client", "worker"))
        try:
            endpoint = host.bind("tcp://127.0.0.1:*")
            async with NorfabWorker([endpoint], "leaf-1", "fleet", Fleet, folder=tmp_path):
                await host.run()
        finally:
            await host.close()
        assert stage.tally.findings == []
        assert stage.tally.received["Ready"] >= 1
        assert stage.tally.answered > 10
        # One without a uuid cannot be answered so that anybody knows what is meant.
        assert [missing for missing in stage.tally.unanswered_requests if missing.key["uuid"]] == []

    run(story)
