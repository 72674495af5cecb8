"""The loop over conversations: what sessions say of every protocol, tokens by key, and the JSON of earlier runs."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest

from specwire.generated.dialog import Reading
from specwire.runtime.spark.answers.dialogs.automaton import TokenChange, Tokens
from specwire.runtime.spark.answers.dialogs.tracking import ConversationTracker
from tests.runtime.spark.answers.dialogs.rows import Conversations, narrow, run
from tests.runtime.spark.answers.dialogs.sessions import Broken, Said, Verdict, dialogs_of, follow, improvise

READINGS: tuple[Reading, ...] = ("strict", "concurrent")
DIALOGS = [
    (protocol, dialog)
    for protocol in ("cmb1", "cmb1_json", "filemq", "flux", "libfilemq", "norfab", "norfab_ascii", "zre")
    for dialog in dialogs_of(protocol)
]


def verdicts(found: list[dict[str, Any]]) -> dict[tuple[str, str, str], Verdict]:
    """Return what the machines say, by tap, conversation and reading."""
    result: dict[tuple[str, str, str], Verdict] = {}
    for row in found:
        for reading in READINGS:
            key, state = (row["tap"], row["conversation"], reading), row[reading]
            assert key not in result
            wrong = [item for item in row["violations"] if item["reading"] == reading]
            assert [item["number"] for item in wrong] == list(range(1, state["violations"] + 1))
            result[key] = Verdict(
                state["from_middle"],
                state["state"],
                state["restarts"],
                state["waiting"],
                tuple(
                    Broken(item["seq"], item["kind"], item["state"], tuple(item["expected"]))
                    for item in wrong
                ),
            )
    return result


def make(protocol: str, dialog: str, seed: int, count: int) -> Conversations:
    chance = random.Random(seed)
    return {
        ("t", f"c{number:03}"): tuple(
            improvise(
                protocol, dialog, chance, chance.randrange(1, 40), discipline=chance.choice((0.98, 0.8, 0.5))
            )
        )
        for number in range(count)
    }


@pytest.mark.parametrize("size", [97, 50_000])
@pytest.mark.parametrize(("protocol", "dialog"), DIALOGS)
def test_machines_say_what_sessions_say(protocol: str, dialog: str, size: int) -> None:
    """State, violations with state and expectations, restarts and waiting requests are those of a session.

    Whether a batch has many conversations or only few.
    """
    conversations = make(protocol, dialog, 7, 60)
    found = verdicts(run(protocol, narrow(protocol, conversations), size=size))
    compared = 0
    for (tap, name), said in conversations.items():
        for reading in READINGS:
            expected = follow(protocol, dialog, reading, said)
            mine = found[tap, name, reading]
            if expected is None:
                assert mine.from_middle
            elif _is_told_apart(protocol, reading, said):
                compared += 1
                assert mine == expected, said
    assert compared > 40


def _is_told_apart(protocol: str, reading: Reading, said: Sequence[Said]) -> bool:
    """Whether the first message tells which of the protocol's dialogs it is; until one does, all are watched."""
    dialogs = dialogs_of(protocol)
    views = [follow(protocol, dialog, reading, said[:1]) for dialog in dialogs]
    return len(dialogs) == 1 or sum(view is not None and not view.violations for view in views) == 1


# --- state of open conversations

PLACE = ("t", "c")

EARLIER = (
    '{"first_seq":3,"last_seq":4,"first_ts":3000000,"last_ts":4000000,"first_mono":3000000000,'
    '"last_mono":4000000000,"messages":2,"errors":1,"tracks":['
    '{"configurations":[[0,"USE",false,false,[],null]],"from_middle":false,"restarts":0,"violations":2,'
    '"waiting":0,"tokens":[]},'
    '{"configurations":[[0,"USE",true,false,[["C_HUGZ",2]],"C"],[0,"START",false,true,[],null]],'
    '"from_middle":true,"restarts":1,"violations":1,"waiting":3,"tokens":[[1,-7,2],[0,9,1]]}]}'
)
"""A state as earlier versions wrote it; the fields need not fit each other."""


def test_the_json_of_earlier_versions_is_read_and_written() -> None:
    """Every field comes back as it was, without new messages."""
    (row,) = run("filemq", narrow("filemq", {}, {PLACE: EARLIER}), saves_state=True)
    assert (row["first_seq"], row["last_seq"], row["messages"], row["errors"]) == (3, 4, 2, 1)
    assert row["concurrent"] == {
        "dialog": "peering", "from_middle": True, "state": "USE|START", "ended": False,
        "restarts": 1, "violations": 1, "waiting": 3,
    }  # fmt: skip
    assert row["carried"] == EARLIER


def test_a_request_of_an_earlier_run_is_answered() -> None:
    """Key and place of the token are those of the run before; a second key is unknown."""
    before = EARLIER.replace("[[1,-7,2],[0,9,1]]", f"[[0,{hash((7,))},1]]").replace(
        '[[0,"USE",true,false,[["C_HUGZ",2]],"C"],[0,"START",false,true,[],null]]',
        '[[0,"USE",false,false,[],null]]',
    )
    replies = [
        Said(5 + place, "S", "Response", {"matchtag": tag, "flags": 0}) for place, tag in enumerate((7, 8))
    ]
    (row,) = run("flux", narrow("flux", {PLACE: replies}, {PLACE: before}))
    wrong = [item for item in row["violations"] if item["reading"] == "concurrent"]
    assert [(item["seq"], item["number"]) for item in wrong] == [(6, 2)]
    assert (row["first_seq"], row["messages"], row["concurrent"]["waiting"]) == (3, 4, 1)


def test_a_place_forgets_the_key_that_has_been_inactive_longest() -> None:
    """Of three requests, two are kept. The second is forgotten: the first has just been replied to."""
    tokens = Tokens((), open_limit=2)
    for key in (1, 2):
        assert tokens.apply(TokenChange(put=0), key)
    assert tokens.apply(TokenChange(takes=((0, 0),)), 1)
    assert tokens.apply(TokenChange(put=0), 3)
    assert not tokens.apply(TokenChange(takes=((0, None),)), 2)
    assert tokens.apply(TokenChange(takes=((0, None),)), 1) and tokens.apply(TokenChange(takes=((0, 1),)), 3)
    assert tokens.waiting == 1 and tokens.saved() == ((1, 3, 1),) and tokens.occupied() == [1]


@pytest.mark.parametrize("size", [1, 3, 100])
def test_a_conversation_with_more_keys_than_are_kept(size: int) -> None:
    """Three are kept: the fourth request removes the first, whatever the size of a batch."""
    said = [Said(tag, "C", "Request", {"matchtag": tag, "flags": 0}) for tag in (1, 2, 3, 4)]
    said += [Said(4 + tag, "S", "Response", {"matchtag": tag, "flags": 0}) for tag in (1, 2)]
    (row,) = run("flux", narrow("flux", {PLACE: said}), size=size, open_limit=3)
    assert [item["seq"] for item in row["violations"] if item["reading"] == "concurrent"] == [5]
    assert row["concurrent"]["waiting"] == 3


def test_finished_conversations_leave_before_more_batches_are_read() -> None:
    """Each batch is a conversation. Its row comes after the next batch was read, not at the end."""
    read = 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal read
        for number in range(5):
            read += 1
            said = {("t", f"c{number}"): [Said(0, "C", "Ohai", {})]}
            yield from narrow("filemq", said).to_batches()

    found = ConversationTracker("filemq", idle_ns=10**9, kept=1, saves_state=False).run(batches())
    assert [(read, batch.column("conversation").to_pylist()) for batch in found] == [
        (2, ["c0"]), (3, ["c1"]), (4, ["c2"]), (5, ["c3"]), (5, ["c4"]),
    ]  # fmt: skip
