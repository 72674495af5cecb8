"""Two taps on one connection: recognised by what both name it, counted once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from specwire.generated import flux, norfab, zre
from specwire.runtime.filemq import FilemqClient, FilemqServer, Publication
from specwire.runtime.norfab.client import NorfabClient
from specwire.runtime.norfab.serve import NorfabBroker
from specwire.runtime.norfab.worker import NorfabWorker, task
from specwire.runtime.spark.answers.dialogs.conversations import conversations
from specwire.runtime.spark.answers.protocol_specifics import specifics_of
from specwire.runtime.spark.answers.taps import TWINS, one_tap, twins
from tests.integration.filemq_scene import digests
from tests.integration.norfab_scene import run
from tests.runtime.spark.answers.traffic import Seen, capture_rows, typed_of

CHILD = "9af32562-7533-4e2f-bef3-89b82dabfb0d"
"""The uuid by which a parent knows its child."""

EVENT, REQUEST = flux.Event(topic="hb"), flux.Request(topic="a", matchtag=1)

FLUX = [
    Seen("S", EVENT, tap="parent", conversation=f"0a0b0c0d-{CHILD}"),
    Seen("S", EVENT, tap="child", conversation=f"11223344-{CHILD}"),
    Seen("C", REQUEST, tap="child", conversation=f"11223344-{CHILD}"),
    Seen("C", REQUEST, tap="parent", conversation="0a0b0c0d-client"),
    Seen("C", REQUEST, tap="child", conversation="11223344-client"),
]
"""The child's tap saw a message more. The local clients of the two are two, whatever they are called."""


@pytest.mark.spark
def test_flux_names_the_child_on_both_sides(spark: SparkSession) -> None:
    """The tap with more messages counts; a name within one tap only says nothing about another's."""
    typed = typed_of(spark, capture_rows(FLUX, "flux"), "flux")
    rows = [row.asDict() for row in twins(conversations(typed, "flux")["conversations"], "flux").collect()]
    assert [{name: row[name] for name in TWINS.fieldNames() if name != "date"} for row in rows] == [
        {
            "protocol": "flux",
            "tap": "parent",
            "conversation": f"0a0b0c0d-{CHILD}",
            "kept_tap": "child",
            "kept_conversation": f"11223344-{CHILD}",
        }
    ]
    once = one_tap(typed, "flux")
    assert {name: once[name].count() for name in ("Event", "Request", "_errors")} == {
        "Event": 1,
        "Request": 3,
        "_errors": 0,
    }
    assert once["Request"].columns == typed["Request"].columns


@pytest.mark.spark
def test_norfab_clients_choose_what_the_broker_calls_them(spark: SparkSession) -> None:
    """A client's routing id ends with the beginning of the conversation's name, a worker's is its name.

    A broker's tap puts the role of the door before it, which may be that of both.
    """
    routing_id, worker = b"me-1-89abcdef".hex(), b"w1".hex()
    said = [
        Seen("C", norfab.Open(header="NFPC01", body=b""), tap="client", conversation="89abcdef01234567"),
        Seen(
            "C",
            norfab.Open(header="NFPC01", body=b""),
            tap="broker",
            conversation=f"00112233-worker-{routing_id}",
        ),
        Seen("C", norfab.Open(header="NFPC01", body=b""), tap="client", conversation="89abcdee01234567"),
        Seen(
            "W",
            norfab.Open(header="NFPW01", body=b""),
            tap="broker",
            conversation=f"00112233-worker-{worker}",
        ),
        Seen(
            "W",
            norfab.Open(header="NFPW01", body=b""),
            tap="worker",
            conversation=f"44556677-worker-{worker}",
        ),
    ]
    typed = typed_of(spark, capture_rows(said, "norfab"), "norfab")
    seen = one_tap(typed, "norfab")["Open"].select("tap", "conversation").collect()
    assert sorted(map(tuple, seen)) == [
        ("broker", f"00112233-worker-{routing_id}"),
        ("broker", f"00112233-worker-{worker}"),
        ("client", "89abcdee01234567"),
    ]


@pytest.mark.spark
def test_one_name_in_two_taps_is_one_connection(spark: SparkSession) -> None:
    """As with any protocol of which nothing more is known."""
    said = [
        Seen("P", zre.Ping(sequence=number), tap=tap, conversation="same")
        for tap, number in (("a", 1), ("b", 1), ("b", 2))
    ]
    typed = typed_of(spark, capture_rows(said, "zre"), "zre")
    assert {row["tap"] for row in one_tap(typed, "zre")["Ping"].collect()} == {"b"}


# --- names that our peers' taps give


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


@pytest.mark.peers
@pytest.mark.spark
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


@pytest.mark.peers
@pytest.mark.spark
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
