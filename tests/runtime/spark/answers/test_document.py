"""docs/reference/answers.md: its examples run, on one file of FILEMQ and some calls of Flux."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from specwire.generated import filemq, flux
from specwire.runtime.spark.answers import durations, protocol_specifics, requests, traffic, transfers
from specwire.runtime.spark.answers.answer import Frames
from tests.docs.page import blocks
from tests.runtime.spark.answers.traffic import Seen, capture_rows, typed_of

pytestmark = pytest.mark.spark

DOCUMENT = Path(__file__).parents[4] / "docs" / "reference" / "answers.md"
CODE = [block for block in blocks(DOCUMENT) if block.language in ("py", "sql")]

FILE = (
    Seen("C", filemq.Ohai()),
    Seen("S", filemq.OhaiOk()),
    Seen("C", filemq.Icanhaz(path="/")),
    Seen("S", filemq.IcanhazOk()),
    Seen("C", filemq.Nom(credit=100)),
    Seen("S", filemq.Cheezburger(1, 1, "/a", 0, (("size", "3"),), b"abc")),
    Seen("S", filemq.Cheezburger(2, 1, "/a", 3, (("size", "3"),), b"")),
    Seen("C", filemq.Ohai()),  # out of turn
)
CALLS = (
    Seen("C", flux.Request(topic="kvs.get", matchtag=1)),
    Seen("S", flux.Response(topic="kvs.get", matchtag=1)),
    Seen("C", flux.Request(topic="kvs.put", matchtag=2)),
    Seen("S", flux.Response(topic="kvs.put", matchtag=2, errnum=2)),
)


def summed(name: str, typed: Frames, answers: Frames) -> DataFrame:
    """Return sums of messages or answers of Flux."""
    (sums,) = (sums for sums in traffic.SUMS if sums.name == name)
    return sums.add_up(sums.select(typed, answers, "flux"), "flux")


@pytest.fixture(scope="module")
def names(spark: SparkSession) -> dict[str, object]:
    """What the examples take as given."""
    file, calls = capture_rows(FILE, "filemq"), capture_rows(CALLS, "flux")
    of_flux = typed_of(spark, calls, "flux")
    asked = requests.advance(of_flux, "flux").whole()["requests"]
    return {
        "spark": spark,
        "typed": typed_of(spark, file[:5], "filemq"),
        "more": typed_of(spark, file[5:], "filemq"),
        "of_flux": of_flux,
        "requests": asked,
        "topics": durations.topics({"calls": summed("calls", {}, {"requests": asked})}, {}, "flux")["topics"],
    }


def test_examples_run(names: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other, as they stand on the page."""
    monkeypatch.setattr(protocol_specifics, "SPECIFICS", dict(protocol_specifics.SPECIFICS))
    for block in CODE:
        if block.language == "py":
            given = names | ({"typed": names["of_flux"]} if '"flux"' in block.text else {})
            exec(compile(block.text, block.place, "exec"), given)  # noqa: S102
            names.update(
                {name: value for name, value in given.items() if name not in ("typed", "__builtins__")}
            )


def test_queries_run(names: dict[str, object], spark: SparkSession) -> None:
    """Against tables of the names that they say."""
    asked = names["requests"]
    assert isinstance(asked, DataFrame)
    asked.createOrReplaceTempView("requests")
    file = typed_of(spark, capture_rows(FILE, "filemq"), "filemq")
    transfers.advance(file, "filemq").whole()["transfers"].createOrReplaceTempView("transfers")
    calls = typed_of(spark, capture_rows(CALLS, "flux"), "flux")
    sent = {"sent": summed("sent", calls, {})}
    traffic.graph(sent, {}, "flux")["nodes"].createOrReplaceTempView("nodes")
    by_topic, by_peer, senders = (
        spark.sql(block.text).collect() for block in CODE if block.language == "sql"
    )
    assert sorted((row["topic"], row[1]) for row in by_topic) == [("kvs.get", 1), ("kvs.put", 1)]
    assert [row["peer"] for row in by_peer] == ["p1"]
    # Each message has a topic of 7 octets and a header of 20.
    assert sorted(map(tuple, senders)) == [("p1", "C", 54), ("tap", "S", 54)]
