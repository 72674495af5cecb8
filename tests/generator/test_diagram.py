"""Drawings of dialogs say what the tables say: every transition once, nothing else."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from specwire.generator.emit.diagram import Reading, dot, draw, mermaid
from specwire.generator.ir.dialogs import Dialog
from specwire.generator.pipeline import compile_protocol

GRAMMARS = Path(__file__).parents[2] / "grammars"
NAMES = ("filemq", "flux", "norfab", "zre")
DIALOGS = [dialog for name in NAMES for dialog in compile_protocol(GRAMMARS / name).protocol.dialogs]


def transitions(dialog: Dialog, reading: Reading) -> Counter[tuple[str, str, str]]:
    """Return every transition of the tables, labels as ``C Ohai``; what waits is called after its place."""
    if reading == "strict":
        rows = [
            (state.name, move.target, move.label) for state in dialog.strict for move in state.transitions
        ]
    else:
        phases = dialog.concurrent.phases
        rows = [(phase.name, move.target, move.label) for phase in phases for move in phase.moves]
        starts = [(phase.name, start) for phase in phases for start in phase.starts]
        rows += [(name, start.phase, start.label) for name, start in starts]
        rows += list({("", f"waiting {s.place}", s.label): None for _, s in starts if s.place})
        rows += [
            (f"waiting {reply.place}", f"waiting {reply.then}" if reply.then else "", reply.label)
            for reply in dialog.concurrent.replies
        ]
    return Counter((source, target, label.replace(":", " ")) for source, target, label in rows)


@pytest.mark.parametrize("reading", ["strict", "concurrent"])
@pytest.mark.parametrize("dialog", DIALOGS, ids=lambda dialog: dialog.rule)
def test_mermaid_has_every_transition_once(dialog: Dialog, reading: Reading) -> None:
    text = mermaid(dialog, reading)
    assert text.startswith("stateDiagram-v2\n    direction LR\n    [*] --> ")
    arrows = re.findall(r"^ +(\S+) --> (\S+): (.*)$", text, re.MULTILINE)
    assert len(arrows) == text.count(": "), "a label holds no colon of its own"
    assert all(re.fullmatch(r"\w+|\[\*\]", end) for source, target, _ in arrows for end in (source, target))
    found = Counter(
        (_plain(source, "[*]"), _plain(target, "[*]"), label)
        for source, target, labels in arrows
        for label in labels.split("<br>")
    )
    assert found == transitions(dialog, reading)


@pytest.mark.parametrize("reading", ["strict", "concurrent"])
@pytest.mark.parametrize("dialog", DIALOGS, ids=lambda dialog: dialog.rule)
def test_dot_has_every_transition_once(dialog: Dialog, reading: Reading) -> None:
    text = dot(dialog, reading)
    assert text.count("{") == text.count("}")
    found = Counter(
        (re.sub(r"exchange \d+", "", source), re.sub(r"exchange \d+", "", target), label)
        for source, target, labels in re.findall(r'"([^"]+)" -> "([^"]+)" \[label="([^"]+)"\];', text)
        for label in labels.split(r"\n")
    )
    assert found == transitions(dialog, reading)


def _plain(name: str, outside: str) -> str:
    return "" if name == outside else name.replace("waiting_", "waiting ", 1)


def test_role_sees_what_it_sends_and_what_it_receives() -> None:
    text = mermaid(DIALOGS[0], "strict", role="S")
    assert "START --> C_OHAI: receive Ohai\n" in text
    assert "C_OHAI --> USE: send OhaiOk<br>send Srsly<br>send Rtfm<br>send Wat\n" in text


def test_states_where_the_dialog_may_end_are_marked() -> None:
    assert [node.name for node in draw(DIALOGS[0], "strict").nodes if node.final] == ["USE", "CLOSED"]
    text = mermaid(DIALOGS[0], "strict")
    assert re.findall(r"(\w+) --> \[\*\]\n", text) == ["USE", "CLOSED"]
    assert re.findall(r'"(\w+)" \[peripheries=2\]', dot(DIALOGS[0], "strict")) == ["USE", "CLOSED"]


def test_exchanges_that_share_no_place_are_drawn_apart() -> None:
    """FILEMQ has three of one step each; a phase and a place may have one name (NORFAB's W_OPEN)."""
    assert [len(edges) for edges in draw(DIALOGS[0], "concurrent").exchanges] == [2, 2, 2]
    worker = next(dialog for dialog in DIALOGS if dialog.name == "worker")
    text = mermaid(worker, "concurrent")
    assert "START --> W_OPEN: W Open\n" in text
    assert "waiting_W_OPEN --> [*]: B Open\n" in text
