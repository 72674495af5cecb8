"""What a capture has and a session has not: beginnings that were not seen, ends, silence, and what is no message.

Each truth is worked out by hand from the dialog's rule.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.runtime.spark.answers.dialogs.rows import narrow, run
from tests.runtime.spark.answers.dialogs.sessions import Said, improvise

PLACE = ("t", "c")


def say(*labels: str, **fields: object) -> list[Said]:
    """Return messages, each as ROLE:Message at the next second; ``ROLE:`` is one that did not decode."""
    parts = (label.partition(":") for label in labels)
    return [Said(seq, sender, name or None, fields) for seq, (sender, _, name) in enumerate(parts)]


def outcome(
    protocol: str, said: list[Said], **options: Any
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the conversations and the violations that are found."""
    found = run(protocol, narrow(protocol, {PLACE: said}), **options)
    by_reading = {"strict": 0, "concurrent": 1}
    violations = [item for row in found for item in row["violations"]]
    return found, sorted(violations, key=lambda item: (by_reading[item["reading"]], item["seq"]))


def test_a_beginning_that_was_not_seen_is_no_violation() -> None:
    """Credit can come only in use, so the peering was opened before; a reply may be to a request from before.

    An OHAI-OK can not come in use, whatever was before.
    """
    (whole,), wrong = outcome("filemq", say("C:Nom", "S:HugzOk", "S:OhaiOk", "C:Kthxbai"))
    assert whole["concurrent"]["from_middle"] and whole["strict"]["from_middle"]
    assert whole["concurrent"]["state"] == "CLOSED" and whole["concurrent"]["ended"]
    assert [item["seq"] for item in wrong if item["reading"] == "concurrent"] == [2]
    # As written, a HUGZ-OK comes after a HUGZ and nothing else, and after credit nothing waits for one.
    assert [item["seq"] for item in wrong if item["reading"] == "strict"] == [1, 2]


def test_of_a_beginning_that_was_not_seen_all_states_are_kept_that_fit() -> None:
    """An error in the strict reading may answer OHAI or ICANHAZ, and leads to use from both."""
    (whole,), wrong = outcome("filemq", say("S:HugzOk"))
    assert not wrong
    assert whole["strict"]["state"] == "USE"
    assert whole["concurrent"]["state"] == "START|C_OHAI|USE"


def test_a_message_that_no_state_allows_is_a_violation_at_the_beginning_too() -> None:
    """No state of ZRE allows a message of the side that only listens; what a peer says next is judged afresh."""
    (whole,), wrong = outcome("zre", say("R:Hello", "P:Hello", "P:Hello"))
    assert not whole["strict"]["from_middle"]
    assert [
        (item["seq"], item["state"], item["expected"]) for item in wrong if item["reading"] == "strict"
    ] == [
        (0, "START", ["P:Hello"]),
        (2, "USE", ["P:Whisper", "P:Shout", "P:Join", "P:Leave", "P:Ping", "P:PingOk"]),
    ]


def test_a_dialog_that_ended_begins_anew() -> None:
    """A worker of the same name is started again; after the end only a beginning is in order."""
    (whole,), wrong = outcome(
        "norfab", say("W:Ready", "W:Disconnect", "W:ResponseWorker", "W:Ready", "B:Keepalive", uuid=1)
    )
    for reading in ("strict", "concurrent"):
        assert whole[reading]["restarts"] == 1
        assert whole[reading]["state"] == "USE"
        assert whole[reading]["dialog"] == "worker"
    assert [(item["reading"], item["seq"], item["state"], item["expected"]) for item in wrong] == [
        ("strict", 2, "CLOSED", []),
        ("concurrent", 2, "CLOSED", []),
    ]
    assert wrong[0]["text"] == "W:ResponseWorker in state CLOSED: expected nothing [worker-dialog]"


def test_requests_before_a_restart_wait_no_more() -> None:
    """The jobs of the worker that went are not those of the one that came."""
    said = say("W:Ready", "B:PostWorker", "W:Disconnect", "W:Ready", "W:ResponseWorker", uuid=1)
    (whole,), wrong = outcome("norfab", said)
    assert [item["seq"] for item in wrong if item["reading"] == "concurrent"] == [4]
    assert whole["concurrent"]["waiting"] == 0


def test_silence_ends_a_conversation() -> None:
    """Eleven seconds of silence where ten are allowed: the next message begins another row."""
    said = [
        item._replace(seq=seq)
        for item, seq in zip(say("C:Ohai", "S:OhaiOk", "C:Nom", "C:Ohai"), (0, 10, 21, 40), strict=True)
    ]
    wholes, wrong = outcome("filemq", said, idle_s=10)
    assert [(item["first_seq"], item["last_seq"], item["messages"]) for item in wholes] == [
        (0, 10, 2),
        (21, 21, 1),
        (40, 40, 1),
    ]
    assert [item["strict"]["from_middle"] for item in wholes] == [False, True, False]
    assert not wrong


def test_what_did_not_decode_is_a_violation_and_may_be_answered() -> None:
    """The state stays; the server's WAT is then in order, which it would not be before the client said anything."""
    (whole,), wrong = outcome("filemq", say("C:", "S:Wat"))
    assert (whole["messages"], whole["errors"]) == (2, 1)
    concurrent = [item for item in wrong if item["reading"] == "concurrent"]
    assert [(item["kind"], item["sender"], item["message"], item["state"]) for item in concurrent] == [
        ("undecodable", "C", None, "START")
    ]
    assert (
        concurrent[0]["text"] == "C sent what is no message in state START: expected C:Ohai [filemq-protocol]"
    )
    assert whole["concurrent"]["state"] == "CLOSED"


def test_a_sender_that_is_no_role_is_named_as_captured() -> None:
    """Such a message changes nothing."""
    (whole,), wrong = outcome("filemq", say("C:Ohai", "Q:Nom", "S:OhaiOk"))
    assert [(item["reading"], item["kind"], item["sender"], item["text"]) for item in wrong] == [
        (reading, "sender", "Q", f"Q:Nom in state C_OHAI: expected {expected} [filemq-protocol]")
        for reading, expected in (
            ("strict", "S:OhaiOk, S:Srsly, S:Rtfm, S:Wat"),
            ("concurrent", "S:OhaiOk, S:Srsly, S:Rtfm, S:Wat"),
        )
    ]
    assert whole["strict"]["state"] == "USE"


def test_both_dialogs_are_watched_until_one_is_told() -> None:
    """Both of NORFAB's begin with OPEN, but of different sides."""
    (whole,), wrong = outcome("norfab", say("B:Open"))
    assert whole["strict"]["dialog"] is None
    (whole,), wrong = outcome("norfab", say("W:Open", "B:Open", "W:Ready"))
    assert whole["strict"]["dialog"] == whole["concurrent"]["dialog"] == "worker"
    assert not wrong


def test_only_the_first_violations_have_rows() -> None:
    """All are counted."""
    (whole,), wrong = outcome("filemq", say("C:Ohai", *["C:Nom"] * 9), kept=2)
    assert [(item["reading"], item["number"], item["seq"]) for item in wrong] == [
        (reading, number, number) for reading in ("strict", "concurrent") for number in (1, 2)
    ]
    assert whole["strict"]["violations"] == whole["concurrent"]["violations"] == 9


@pytest.mark.parametrize(
    ("protocol", "dialog"), [("filemq", "peering"), ("flux", "rpc"), ("norfab", "worker")]
)
def test_portions_and_batches_change_nothing(protocol: str, dialog: str) -> None:
    """Cut anywhere, with the open conversations carried over, the rows are those of all at once."""
    chance = random.Random(dialog)
    conversations = {
        ("t", f"c{number}"): list(improvise(protocol, dialog, chance, 30, discipline=0.8))
        for number in range(5)
    }
    expected = run(protocol, narrow(protocol, conversations), kept=5)
    for size in (1, 9):
        assert _sorted(run(protocol, narrow(protocol, conversations), size=size, kept=5)) == _sorted(expected)

    cuts = sorted(chance.sample(range(1, 60), 2))
    carried: dict[tuple[str, str], str] = {}
    violations: dict[str, list[dict[str, Any]]] = {}
    rows: list[dict[str, Any]] = []
    for start, end in zip([0, *cuts], [*cuts, 10**6], strict=True):
        portion = {
            place: [item for item in said if start <= item.seq < end] for place, said in conversations.items()
        }
        rows = run(protocol, narrow(protocol, portion, carried), size=40, kept=5, saves_state=True)
        carried = {(row["tap"], row["conversation"]): row["carried"] for row in rows}
        for row in rows:
            violations.setdefault(row["conversation"], []).extend(row["violations"])
    last = [row | {"carried": None, "violations": violations[row["conversation"]]} for row in rows]
    assert _sorted(last) == _sorted(expected)


def _sorted(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (row["conversation"], row["first_seq"]))


def test_a_long_conversation_with_many_open_requests() -> None:
    """Each HUGZ without an answer makes another node; automata are cleared before they fill the memory."""
    said = [
        Said(seq, *(("S", "OhaiOk") if seq == 1 else ("C", "Hugz" if seq else "Ohai")), {})
        for seq in range(5_000)
    ]
    (whole,), wrong = outcome("filemq", said, size=1000, kept=1, nodes_kept=1500)
    assert whole["concurrent"]["waiting"] == 4_998
    assert whole["concurrent"]["violations"] == 0
    # As written nothing but HUGZ-OK may follow a HUGZ.
    assert whole["strict"]["violations"] == 4_997 and wrong[0]["seq"] == 3
