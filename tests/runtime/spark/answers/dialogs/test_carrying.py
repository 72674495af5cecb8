"""Open conversations as JSON: written together as each by itself, and paired at once as one message after another."""

from __future__ import annotations

import random

import msgspec
import numpy as np
import pytest

from specwire.runtime.spark.answers.dialogs import pairing
from specwire.runtime.spark.answers.dialogs.opened import Opened, Track, from_text, to_text
from tests.runtime.spark.answers.dialogs.rows import Conversations, narrow, run
from tests.runtime.spark.answers.dialogs.sessions import Said

SAID = [
    ("C", "Request"),
    ("S", "Response"),
    ("S", "Request"),
    ("C", "Response"),
    ("S", "Event"),
    ("C", "Control"),
]


def test_as_if_one_message_came_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys that are asked for again, replied to out of order, and never asked for; in batches that cut conversations."""
    chance = random.Random(5)
    conversations = {
        ("t", f"c{number}"): [
            Said(seq, *chance.choice(SAID), {"matchtag": chance.randrange(1, 5), "flags": 0})
            for seq in range(chance.randrange(1, 30))
        ]
        for number in range(60)
    }
    for size in (50_000, 100, 7):
        at_once = _carried(conversations, size)
        with monkeypatch.context() as patch:
            patch.setattr(pairing, "_are_quick", lambda *args: np.zeros(args[3], np.bool_))
            one_by_one = _carried(conversations, size)
        assert at_once == one_by_one
        assert sum(len(opened.tracks[1].tokens) > 2 for opened in at_once.values()) > 20


def test_conversations_without_keys() -> None:
    """What has no tokens by key has none in its text; nodes with several configurations are written whole."""
    conversations = {("t", "c1"): [Said(0, "C", "Ohai", {})], ("t", "c2"): [Said(3, "C", "Nom", {})]}
    rows = run("filemq", narrow("filemq", conversations), keep=True)
    opened = {row["conversation"]: from_text(row["whole"]["carried"]) for row in rows if row["whole"]}
    assert [opened[name].tracks[0].from_middle for name in ("c1", "c2")] == [False, True]
    assert (opened["c2"].first_seq, opened["c2"].last_mono, opened["c2"].messages) == (3, 3 * 10**9, 1)
    assert len(opened["c2"].tracks[0].configurations) >= 1


def _carried(conversations: Conversations, size: int) -> dict[str, Opened]:
    """The conversations by name; the texts are those that each has by itself, the order of places is left open."""
    rows = run("flux", narrow("flux", conversations), size=size, keep=True)
    texts = {row["conversation"]: row["whole"]["carried"] for row in rows if row["whole"]}
    opened = {name: from_text(text) for name, text in texts.items()}
    assert {name: to_text(found) for name, found in opened.items()} == texts
    return {
        name: msgspec.structs.replace(found, tracks=tuple(map(_by_place, found.tracks)))
        for name, found in opened.items()
    }


def _by_place(track: Track) -> Track:
    return msgspec.structs.replace(track, tokens=tuple(sorted(track.tokens, key=lambda token: token[0])))
