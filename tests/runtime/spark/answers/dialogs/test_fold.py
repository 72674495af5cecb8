"""The machines over rows against sessions over messages: every protocol, both readings, any batches."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from specwire.generated.dialog import Reading
from specwire.runtime.spark.answers.dialogs import joint
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
    violations: dict[tuple[str, str, str], list[Broken]] = {}
    for row in found:
        if (said := row["violation"]) is not None:
            key = (row["tap"], row["conversation"], said["reading"])
            wrong = violations.setdefault(key, [])
            wrong.append(Broken(said["seq"], said["kind"], said["state"], tuple(said["expected"])))
            assert said["number"] == len(wrong)
    result: dict[tuple[str, str, str], Verdict] = {}
    for row in found:
        if (whole := row["whole"]) is not None:
            for reading in READINGS:
                key, watched = (row["tap"], row["conversation"], reading), whole[reading]
                assert key not in result
                wrong = violations.get(key, [])
                assert watched["violations"] == len(wrong)
                result[key] = Verdict(
                    watched["from_middle"],
                    watched["state"],
                    watched["restarts"],
                    watched["waiting"],
                    tuple(wrong),
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


@pytest.mark.parametrize("side_by_side", [1, 5, 1000])
@pytest.mark.parametrize(("protocol", "dialog"), DIALOGS)
def test_machines_say_what_sessions_say(
    protocol: str, dialog: str, side_by_side: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """State, violations with state and expectations, restarts and waiting requests are those of a session.

    However many conversations are followed side by side, and however few rows are given at once.
    """
    monkeypatch.setattr(joint, "SIDE_BY_SIDE", side_by_side)
    conversations = make(protocol, dialog, 7, 60)
    found = verdicts(run(protocol, narrow(protocol, conversations), size=97 * side_by_side))
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
