"""Two taps on one connection: recognised by what both name it, counted once."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from specwire.generated import flux, norfab, zre
from specwire.runtime.spark.answers.dialogs.conversations import conversations
from specwire.runtime.spark.answers.taps import TWINS, one_tap, twins
from tests.runtime.spark.answers.traffic import Seen, capture_rows, typed_of

pytestmark = pytest.mark.spark

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


def test_one_name_in_two_taps_is_one_connection(spark: SparkSession) -> None:
    """As with any protocol of which nothing more is known."""
    said = [
        Seen("P", zre.Ping(sequence=number), tap=tap, conversation="same")
        for tap, number in (("a", 1), ("b", 1), ("b", 2))
    ]
    typed = typed_of(spark, capture_rows(said, "zre"), "zre")
    assert {row["tap"] for row in one_tap(typed, "zre")["Ping"].collect()} == {"b"}
