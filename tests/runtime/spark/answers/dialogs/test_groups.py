"""What the bench holds the machines against, sessions by group, finds what the machines find."""

from __future__ import annotations

import random
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from specwire.runtime.spark.answers.dialogs.conversations import IDLE_S, track
from tests.benchmarks.spark.groups import count_by_group, follow_by_group
from tests.runtime.spark.answers.dialogs.rows import narrow
from tests.runtime.spark.answers.dialogs.sessions import Said

SAID = {
    "filemq": (
        ("C", "Ohai"),
        ("S", "OhaiOk"),
        ("C", "Icanhaz"),
        ("S", "IcanhazOk"),
        ("C", "Nom"),
        ("S", "Cheezburger"),
    ),
    "flux": (("C", "Request"), ("S", "Response"), ("C", "Request"), ("S", "Response"), ("S", "Event")),
}
KEPT = 2


def said(protocol: str, chance: random.Random) -> list[Said]:
    """Return a conversation that begins as it should and then has some messages too many, or out of turn."""
    found = list(SAID[protocol])
    for _ in range(chance.randrange(4)):
        found.insert(chance.randrange(1, len(found)), chance.choice(found))
    return [
        Said(seq, sender, message, {"matchtag": chance.randrange(1, 4), "flags": 0})
        for seq, (sender, message) in enumerate(found)
    ]


def told(frame: DataFrame) -> list[str]:
    """Return the rows as texts, for rows with nulls have no order."""
    return sorted(str(row) for row in frame.collect())


@pytest.mark.parametrize("protocol", SAID)
def test_sessions_by_group_give_the_rows_of_the_machines(protocol: str, spark: SparkSession) -> None:
    """All that is told of a conversation and of its first violations, in both readings; and how many there are."""
    chance = random.Random(11)
    conversations = {("t", f"c{number:02}"): said(protocol, chance) for number in range(40)}
    table = narrow(protocol, conversations)
    rows = spark.createDataFrame(table)
    machines = track(rows, protocol, idle_s=IDLE_S, kept=KEPT, saves_state=False)
    found: list[Any] = machines.collect()
    assert len(found) == len(conversations)
    states = [row[reading] for row in found for reading in ("strict", "concurrent")]
    assert not any(state["from_middle"] or state["restarts"] for state in states)
    violations = sum(state["violations"] for state in states)
    assert violations > sum(len(row["violations"] or ()) for row in found) > 20
    assert told(follow_by_group(rows, protocol, KEPT)) == told(machines)
    assert sum(row["violations"] for row in count_by_group(rows, protocol).collect()) == violations
