"""The machines over rows against sessions over messages: every protocol, both readings, any batches."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from specwire.generated.dialog import Reading
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
