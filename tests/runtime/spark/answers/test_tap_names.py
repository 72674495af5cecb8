"""What the taps of both sides call a connection has a part in common, by which Spark knows that it is one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from specwire.runtime.filemq import FilemqClient, FilemqServer, Publication
from specwire.runtime.norfab.client import NorfabClient
from specwire.runtime.norfab.serve import NorfabBroker
from specwire.runtime.norfab.worker import NorfabWorker, task
from specwire.runtime.spark.answers.protocol_specifics import specifics_of
from tests.integration.filemq_scene import digests
from tests.integration.norfab_scene import run

pytestmark = [pytest.mark.peers, pytest.mark.spark]


class Names:
    """A tap that keeps the names of conversations, by what was said in them first."""

    def __init__(self) -> None:
        self.conversations: dict[str, list[bytes]] = {}

    def record(self, *, sender: str, peer: str, conversation: str, frames: Sequence[bytes]) -> None:
        """Take one message."""
        self.conversations.setdefault(conversation, list(frames))


def connections(spark: SparkSession, protocol: str, taps: Sequence[Names]) -> list[list[str]]:
    """Return what Spark makes of each tap's conversations."""
    rows = [(number, name) for number, tap in enumerate(taps) for name in tap.conversations]
    frame = spark.createDataFrame(rows, "number int, conversation string")
    found = frame.select("number", F.expr(specifics_of(protocol).connection).alias("connection")).collect()
    return [sorted(row["connection"] for row in found if row["number"] == one) for one in range(len(taps))]


def test_a_filemq_server_and_its_clients(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "a").write_bytes(b"content")
    server_tap, one, other = Names(), Names(), Names()

    async def story() -> None:
        async with FilemqServer([Publication(tmp_path / "source", "/")], tap=server_tap) as server:
            for number, tap in enumerate((one, other)):
                async with FilemqClient(server.endpoint, tmp_path / f"in{number}", ["/"], tap=tap) as client:
                    await client.until_equal(digests(tmp_path / "source"), timeout_s=50)

    asyncio.run(story())
    of_server, of_one, of_other = connections(spark, "filemq", [server_tap, one, other])
    assert len(of_one) == len(of_other) == 1
    assert of_server == sorted(of_one + of_other)


class Fleet:
    """A service."""

    @task
    async def noop(self) -> None:
        """Do nothing."""


def test_a_norfab_broker_and_its_peers(spark: SparkSession, tmp_path: Path) -> None:
    of_broker, of_worker, of_client = Names(), Names(), Names()

    async def story() -> None:
        async with (
            NorfabBroker("tcp://127.0.0.1:*", tmp_path / "broker", tap=of_broker) as broker,
            NorfabWorker(broker.endpoints, "w1", "svc", Fleet, folder=tmp_path / "w1", tap=of_worker),
            NorfabClient(broker.endpoints, name="me", tap=of_client) as client,
        ):
            assert (await client.run("svc", "noop", timeout=50)).ok

    run(story)
    broker, worker, client = connections(spark, "norfab", [of_broker, of_worker, of_client])
    assert len(worker) == len(client) == 1
    assert broker == sorted(worker + client)
