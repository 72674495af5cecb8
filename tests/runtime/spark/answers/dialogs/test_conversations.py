"""Conversations from typed tables, whole and in portions, against truths worked out by hand and against sessions."""

from __future__ import annotations

import random
import re
import runpy
from functools import reduce
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from specwire.generated import filemq, flux, norfab
from specwire.runtime.spark.answers.answer import Step
from specwire.runtime.spark.answers.dialogs.conversations import (
    CONVERSATIONS,
    VIOLATIONS,
    advance,
    conversations,
)
from specwire.runtime.spark.answers.dialogs.symbols import LONGEST_NAME
from specwire.runtime.spark.errors import InputError
from tests.runtime.spark.answers.dialogs.sessions import Said, follow
from tests.runtime.spark.answers.traffic import Seen, capture_rows, in_portions, portions_of, typed_of

pytestmark = pytest.mark.spark


def as_dicts(frame: DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a frame."""
    return [row.asDict(recursive=True) for row in frame.collect()]


ROOT = Path(__file__).parents[5]

NOT_FILEMQ = [b"\xaa\xa3\x77"]
"""The octet at offset 2 names no message."""

FILEMQ = [
    Seen("C", filemq.Ohai(), conversation="good"),
    Seen("C", filemq.Nom(credit=9), conversation="hasty"),
    Seen("S", filemq.OhaiOk(), conversation="good"),
    Seen("C", filemq.Icanhaz(path="/a"), conversation="good"),
    Seen("C", filemq.Nom(credit=1), conversation="good"),
    Seen("C", NOT_FILEMQ, conversation="good"),
    Seen("S", filemq.IcanhazOk(), conversation="good"),
    Seen("S", filemq.OhaiOk(), conversation="hasty"),
    Seen("C", filemq.Hugz(), conversation="good"),
    Seen("S", filemq.Kthxbai(), conversation="good"),
    Seen("Z", filemq.Hugz(), conversation=""),
]
"""Two peerings. In the good one credit comes before ICANHAZ-OK, which only the rule as written forbids, and one message
is none. The hasty one was not seen from its beginning; an OHAI-OK after credit is out of turn. The last has no name.
"""


def test_filemq_by_hand(spark: SparkSession) -> None:
    """States, counts, first and last messages; what each violation found, and what would have been valid."""
    typed = typed_of(spark, capture_rows(FILEMQ, "filemq"), "filemq")
    answer = conversations(typed, "filemq")
    found = {row["conversation"]: row for row in as_dicts(answer["conversations"])}
    good, hasty, nameless = found["good"], found["hasty"], found[""]
    assert (good["protocol"], str(good["date"]), good["tap"], good["peer"]) == (
        "filemq",
        "2026-11-20",
        "tap-1-0",
        "p1",
    )
    assert (good["first_seq"], good["last_seq"], good["messages"], good["errors"]) == (0, 9, 8, 1)
    assert good["duration_us"] == 9000.0
    assert (good["last_ts"] - good["first_ts"]).total_seconds() == 0.009
    assert good["concurrent"] == {
        "dialog": "peering", "from_middle": False, "state": "CLOSED", "ended": True,
        "restarts": 0, "violations": 1, "waiting": 1,
    }  # fmt: skip
    # ICANHAZ, then credit (wrong), no message (wrong), ICANHAZ-OK, HUGZ, and KTHXBAI instead of HUGZ-OK (wrong).
    assert good["strict"] | {"state": "C_HUGZ", "violations": 3, "ended": False} == good["strict"]
    assert (hasty["concurrent"]["from_middle"], hasty["concurrent"]["violations"], hasty["messages"]) == (
        True,
        1,
        2,
    )
    assert (nameless["concurrent"]["state"], nameless["concurrent"]["violations"]) == ("START", 1)

    wrong = as_dicts(answer["violations"])
    told = {(row["conversation"], row["reading"], row["seq"]): row for row in wrong}
    assert sorted(told) == [
        ("", "concurrent", 10), ("", "strict", 10),
        ("good", "concurrent", 5), ("good", "strict", 4), ("good", "strict", 5), ("good", "strict", 9),
        ("hasty", "concurrent", 7), ("hasty", "strict", 7),
    ]  # fmt: skip
    credit = told["good", "strict", 4]
    assert (credit["number"], credit["kind"], credit["sender"], credit["message"], credit["state"]) == (
        1, "unexpected", "C", "Nom", "C_ICANHAZ",
    )  # fmt: skip
    assert credit["expected"] == ["S:Srsly", "S:Rtfm", "S:Wat", "S:IcanhazOk"]
    assert (credit["first_seq"], credit["dialog"], str(credit["date"])) == (0, "peering", "2026-11-20")
    assert told["good", "concurrent", 5]["kind"] == "undecodable"
    assert told["good", "concurrent", 5]["message"] is None
    assert told["", "strict", 10]["kind"] == "sender" and told["", "strict", 10]["sender"] == "Z"
    assert told["hasty", "concurrent", 7]["state"] == "USE"

    names = reduce(
        DataFrame.union, (frame.select(F.lit(name).alias("name")) for name, frame in typed.items())
    )
    counts = {row["name"]: row["count"] for row in names.groupBy("name").count().collect()}
    assert sum(counts.values()) == len(FILEMQ) == sum(row["messages"] for row in found.values())
    assert counts["_errors"] == sum(row["errors"] for row in found.values()) == 1
    for name, schema in (("conversations", CONVERSATIONS), ("violations", VIOLATIONS)):
        assert answer[name].schema.fieldNames() == schema.fieldNames()
        assert [(field.dataType, field.metadata) for field in answer[name].schema] == [
            (field.dataType, field.metadata) for field in schema
        ]


def test_flux_by_hand(spark: SparkSession) -> None:
    """Responses are paired by matchtag; one without a tag and a request that wants no answer pair with nothing."""
    request, response, event = flux.Request, flux.Response, flux.Event
    said = [
        ("C", request(topic="a", matchtag=1)),
        ("C", request(topic="b", matchtag=2)),
        ("S", response(topic="b", matchtag=2)),
        ("S", response(topic="c", matchtag=3)),  # nobody asked
        ("S", response(topic="b", matchtag=2)),  # streams
        ("C", request(topic="d", matchtag=4, flags=4)),  # wants no answer
        ("S", response(topic="d", matchtag=4)),  # and gets one
        ("S", response(topic="e", matchtag=0)),
        ("S", event(topic="hb")),
        ("S", request(topic="f", matchtag=3)),
        ("C", response(topic="f", matchtag=3)),
    ]
    typed = typed_of(spark, capture_rows([Seen(*item) for item in said], "flux"), "flux")
    answer = conversations(typed, "flux")
    (row,) = as_dicts(answer["conversations"])
    assert (row["concurrent"]["violations"], row["concurrent"]["waiting"], row["messages"]) == (2, 3, 11)
    wrong = [item for item in as_dicts(answer["violations"]) if item["reading"] == "concurrent"]
    assert [(item["seq"], item["state"], item["message"]) for item in wrong] == [
        (3, "USE", "Response"),
        (6, "USE", "Response"),
    ]
    # Two requests wait for their responses, but not this one: it is not among what is expected.
    assert wrong[0]["expected"] == ["C:Request", "S:Event", "C:Control", "S:Request", "C:Event", "S:Control"]


def test_norfab_by_hand(spark: SparkSession) -> None:
    """A client's and a worker's conversation in one capture; a result whose job the worker was never given."""
    one, other = "1" * 32, "2" * 32
    said = [
        Seen("W", norfab.Ready(service="s"), conversation="w"),
        Seen("C", norfab.PostClient(service="s", target="all", uuid=one, body=b"{}"), conversation="c"),
        Seen("B", norfab.PostWorker(client_address=b"c", uuid=one, body=b"{}"), conversation="w"),
        Seen(
            "W",
            norfab.ResponseWorker(client_address=b"c", uuid=one, status="200", body=b"{}"),
            conversation="w",
        ),
        Seen(
            "W",
            norfab.ResponseWorker(client_address=b"c", uuid=other, status="200", body=b"{}"),
            conversation="w",
        ),
        Seen("B", norfab.ResponseClient(service="s", uuid=one, status="200", body=b"{}"), conversation="c"),
        Seen("W", norfab.Disconnect(header="NFPW01"), conversation="w"),
    ]
    answer = conversations(typed_of(spark, capture_rows(said, "norfab"), "norfab"), "norfab")
    found = {row["conversation"]: row["concurrent"] for row in as_dicts(answer["conversations"])}
    assert {name: (row["dialog"], row["state"], row["violations"]) for name, row in found.items()} == {
        "c": ("client", "USE", 0),
        "w": ("worker", "CLOSED", 1),
    }
    (wrong,) = (row for row in as_dicts(answer["violations"]) if row["reading"] == "concurrent")
    assert (wrong["seq"], wrong["message"], wrong["dialog"]) == (4, "ResponseWorker", "worker")


def test_portions_of_real_messages_against_sessions(spark: SparkSession) -> None:
    """Three portions with state between them say what a session says of the whole, through octets and columns."""
    chance = random.Random(11)
    said: list[Seen] = []
    for _ in range(240):
        tag = chance.choice((0, 1, 2, 3))
        kind = chance.choice((flux.Request, flux.Request, flux.Response, flux.Event))
        fields: dict[str, Any] = {"topic": "t"}
        if kind is not flux.Event:
            fields |= {"matchtag": tag}
        if kind is flux.Request and chance.random() < 0.2:
            fields |= {"flags": 4}
        message = kind(**fields)
        frames: Any = [b"no", b"message"] if chance.random() < 0.05 else message
        said.append(Seen(chance.choice("CCCSSSX"), frames, conversation=f"c{chance.randrange(6)}"))
    rows = capture_rows(said, "flux")
    cuts = [0, *sorted(chance.sample(range(1, 240), 2)), 240]
    wholes: dict[str, Any] = {}
    wrong: list[dict[str, Any]] = []
    step: Step | None = None
    for start, end in pairwise(cuts):
        typed = typed_of(spark, rows[start:end], "flux")
        after = advance(typed, "flux", step.state if step else None, kept=1000)
        wrong += as_dicts(after.closed["violations"])
        wholes = {row["conversation"]: row for row in as_dicts(after.open["conversations"])}
        if step:
            step.release()
        step = after
    for name in {item.conversation for item in said}:
        mine = [(seq, item) for seq, item in enumerate(said) if item.conversation == name]
        heard = [Said(seq, item.sender, *_content(item.message)) for seq, item in mine]
        for reading in ("strict", "concurrent"):
            expected = follow("flux", "rpc", reading, heard)
            assert expected is not None or wholes[name][reading]["from_middle"]
            if expected is not None:
                found = [row for row in wrong if (row["conversation"], row["reading"]) == (name, reading)]
                assert [
                    (row["seq"], row["kind"], row["state"], tuple(row["expected"]))
                    for row in sorted(found, key=lambda row: row["number"])
                ] == list(map(tuple, expected.violations))
                assert wholes[name][reading]["waiting"] == expected.waiting
    assert any(row["reading"] == "concurrent" for row in wrong)


def _content(message: Any) -> tuple[str | None, dict[str, Any]]:
    if isinstance(message, list):
        return None, {}
    fields = {"flags": message.flags} | (
        {"matchtag": message.matchtag} if hasattr(message, "matchtag") else {}
    )
    return type(message).__name__, fields


def test_what_is_silent_is_closed(spark: SparkSession) -> None:
    """By the tap's own clock; a conversation that goes on afterwards is another row."""
    first = [Seen("C", filemq.Ohai(), 0), Seen("C", filemq.Ohai(), 20_000, conversation="c2")]
    second = [
        *first,
        Seen("S", filemq.OhaiOk(), 20_001),
        Seen("S", filemq.OhaiOk(), 20_002, conversation="c2"),
    ]
    before = advance(typed_of(spark, capture_rows(first, "filemq"), "filemq"), "filemq", None, idle_s=10)
    assert [row["conversation"] for row in as_dicts(before.closed["conversations"])] == ["c1"]
    assert [row["conversation"] for row in as_dicts(before.open["conversations"])] == ["c2"]
    idle = advance({}, "filemq", before.state, idle_s=10)
    assert as_dicts(idle.open["conversations"]) == as_dicts(before.open["conversations"])
    idle.release()
    with pytest.raises(InputError, match="no typed table of protocol 'filemq'"):
        advance({}, "filemq", None)
    rest = typed_of(spark, capture_rows(second, "filemq")[2:], "filemq")
    after = advance(rest, "filemq", before.state, idle_s=10)
    assert after.closed["conversations"].count() == 0
    portions = as_dicts(before.closed["conversations"]) + as_dicts(after.open["conversations"])
    whole = as_dicts(
        conversations(typed_of(spark, capture_rows(second, "filemq"), "filemq"), "filemq", idle_s=10)[
            "conversations"
        ]
    )
    assert sorted(portions, key=str) == sorted(whole, key=str)
    assert sorted((row["conversation"], row["strict"]["from_middle"]) for row in whole) == [
        ("c1", False), ("c1", True), ("c2", False),
    ]  # fmt: skip
    before.release()
    after.release()


def test_a_tap_that_is_heard_of_lives_whatever_its_clock_says(spark: SparkSession) -> None:
    """One clock is two days ahead. When the other tap is heard of no more, its conversations are over."""
    days = 2 * 86_400_000
    said = [
        Seen("C", filemq.Ohai(), 1, tap="slow"),
        Seen("C", filemq.Ohai(), days + 1, tap="fast"),
        Seen("S", filemq.OhaiOk(), 2, tap="slow"),
        Seen("S", filemq.OhaiOk(), days + 2, tap="fast"),
        Seen("C", filemq.Icanhaz(path="/a"), days + 3, tap="fast"),
    ]
    rows = capture_rows(said, "filemq")
    step: Step | None = None
    found = []
    for start, end in ((0, 2), (2, 4), (0, 0), (4, 5)):
        typed = typed_of(spark, rows[start:end], "filemq") if start < end else {}
        after = advance(typed, "filemq", step.state if step else None)
        states = (as_dicts(frame["conversations"]) for frame in (after.closed, after.open))
        found.append([sorted((row["tap"], row["messages"]) for row in tables) for tables in states])
        if step:
            step.release()
        step = after
    assert found == [
        [[], [("fast", 1), ("slow", 1)]],
        [[], [("fast", 2), ("slow", 2)]],
        [[], [("fast", 2), ("slow", 2)]],
        [[("slow", 2)], [("fast", 3)]],
    ]


def test_a_nul_in_a_name(spark: SparkSession) -> None:
    """It stays there, and the conversation is followed from portion to portion; of a long name the first part."""
    where: dict[str, Any] = {"conversation": "a\0b" + "é" * LONGEST_NAME, "peer": "p\0", "tap": "\0t"}
    said = [
        Seen("C", filemq.Ohai(), **where),
        Seen("S", filemq.OhaiOk(), **where),
        Seen("X\0", NOT_FILEMQ, **where),
    ]
    portions = portions_of(spark, capture_rows(said, "filemq"), "filemq", 1, 2)
    found = in_portions(advance, portions, "filemq")
    (row,) = found["conversations"]
    names = ("\0t", "a\0b" + "é" * (LONGEST_NAME - 3), "p\0")
    assert (row["tap"], row["conversation"], row["peer"]) == names
    assert (row["messages"], row["errors"], row["concurrent"]["violations"]) == (3, 1, 1)
    wrong = [item for item in found["violations"] if item["reading"] == "concurrent"]
    assert [(item["tap"], item["conversation"], item["peer"]) for item in wrong] == [names]


def test_columns_that_were_never_noted(spark: SparkSession) -> None:
    """Foreign captures may have nulls anywhere; no row is lost."""
    typed = typed_of(spark, capture_rows([Seen("C", filemq.Ohai())], "filemq"), "filemq")
    nulls = {
        name: F.lit(None).cast(typed["Ohai"].schema[name].dataType)
        for name in ("ts", "mono", "seq", "tap", "conversation", "sender", "peer")
    }
    answer = conversations({"Ohai": typed["Ohai"].withColumns(nulls)}, "filemq")
    (row,) = as_dicts(answer["conversations"])
    assert (row["tap"], row["conversation"], row["messages"], row["strict"]["violations"]) == ("", "", 1, 1)


def test_the_guide(spark: SparkSession, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The code of the sections about conversations and taps runs, one block after another."""
    guide = (ROOT / "docs" / "reference" / "answers.md").read_text(encoding="utf-8")
    rows = capture_rows(FILEMQ, "filemq")
    names = {"typed": typed_of(spark, rows[:4], "filemq"), "more": typed_of(spark, rows[4:], "filemq")}
    sections = re.split(r"^## ", guide, flags=re.MULTILINE)
    mine = [section for section in sections if section.startswith(("Conversations", "Two taps"))]
    blocks = [block for section in mine for block in re.findall(r"```py\n(.*?)```", section, re.DOTALL)]
    assert len(blocks) == 2
    script = tmp_path / "guide.py"
    script.write_text("\n".join(blocks), encoding="utf-8")
    runpy.run_path(str(script), init_globals=names)
    assert "C:Nom" not in capsys.readouterr().out
