"""Frame tables and drawn dialogs: what a line may say, and what becomes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from specwire.generator.diagnostics import Diagnostics, Source
from specwire.generator.documents.dialog_text import parse_dialog
from specwire.generator.documents.frametable import Frame, parse_frame_table
from specwire.generator.documents.importing import import_document


def frame(line: str) -> Frame:
    """Return the frame that a line describes."""
    diagnostics = Diagnostics()
    table = parse_frame_table(Source("d", line), f"X command\n---\n{line}\n", diagnostics)
    assert table is not None and not list(diagnostics)
    assert table.title == "X command"
    return table.frames[0]


@pytest.mark.parametrize(
    ("line", "kind", "constants", "size"),
    [
        ("Frame 0: Empty frame", "empty", (), None),
        ("Frame 0: Empty (zero bytes, invisible)", "empty", (), 0),
        ("Frame 1: \u201cAB\u201d or \"C\" (two bytes)", "constant", (b"AB", b"C"), 2),
        ("Frame 1: \"MDPC01\" (six bytes, representing MDP/Client v0.1)", "constant", (b"MDPC01",), 6),
        ("Frame 2: 0x04 (one byte, representing POST)", "constant", (b"\x04",), 1),
        ("Frame 2: 0x04 or 0xA0B1", "constant", (b"\x04", b"\xa0\xb1"), None),
        ("* Frame 3: Service name (printable string)", "text", (), None),
        ("Frame 4: Target (printable string) one, `all` (default) or some", "text", (), None),
        ("Frame 5: Credit (8 octets, network order)", "octets", (), 8),
        ("Frames 6+: Body (opaque binary)", "octets", (), None),
        ("Frame 5: Status code, (explained below)", "unknown", (), None),
        ("Frame 1: UUID, 16 bytes", "octets", (), 16),
        ("Frame 0: key, as 0MQ string", "text", (), None),
        ("Frame 4: <empty>", "empty", (), None),
        ("Frame 1: 'u_U' (3 bytes)", "constant", (b"u_U",), 3),
        ("Frame 1: 0000", "constant", (bytes(4),), None),
        ("Frame 3: Client address (envelope stack)", "octets", (), None),
    ],
)  # fmt: skip
def test_what_a_line_says(line: str, kind: str, constants: tuple[bytes, ...], size: int | None) -> None:
    found = frame(line)
    assert (found.kind, found.constants, found.size_octets) == (kind, constants, size)
    assert found.repeated == line.startswith("Frames")


@pytest.mark.parametrize(
    ("line", "conditional"),
    [
        ("Frame 1: Ticket, if OK", True),
        ("Frame 1: Ticket (optional, 16 bytes)", True),
        ("Frame 1: Optional things (binary)", False),
        ("Frame 1: Ticket (16 bytes)", False),
    ],
)
def test_frames_that_are_not_always_there(line: str, conditional: bool) -> None:
    assert frame(line).conditional is conditional


def test_a_label_and_what_it_stands_for() -> None:
    assert frame("Frame 2: 0x07 (one byte, representing POST)").stands_for == "POST"
    assert frame('Frame 1: "A" (one byte, representing MDP/Client)').stands_for is None
    assert frame("Frame 5: Status code, (explained below)").label == "Status code"


@pytest.mark.parametrize("line", ["Frame 1: 0xZ", "Frame 1:", "Frame 1: (nothing)", "Frame one"])
def test_a_line_that_cannot_be_read_is_shown(line: str) -> None:
    diagnostics = Diagnostics()
    text = f"X command\nFrame 0: Empty\n{line}\n"
    assert parse_frame_table(Source("d", text), text, diagnostics) is None
    (found,) = diagnostics
    assert found.code == "E704"
    assert found.span.line in (2, 3)


def dialogs(text: str) -> list[str]:
    """Return what a drawing becomes."""
    return [dialog.abnf() for dialog in parse_dialog(Source("d", text), text, Diagnostics())]


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("C: A\nS: B\n", ["C:A S:B"]),
        ("\n\n  C: A\n  S: B", ["C:A S:B"]),
        ("Repeat:\n\tC: A\n\t...\n\n\tS: B\n\n\tC: C\n\tS: D\n", ["*( C:A / S:B / C:C S:D )"]),
        ("C: A\nRepeat:\n  Repeat:\n    C: B\n  S: C\n", ["C:A *( *( C:B ) S:C )"]),
        ("C: A    S: A\nC: B    S: C\n", ["( C:A / S:A ) ( C:B / S:C )"]),
        ("C: A    S: A\nC: B\n", ["C:A C:B", "S:A"]),
        ("Repeat:   Repeat:   Repeat:\n  C: A      S: A      P: A\n", ["*( C:A / S:A / P:A )"]),
        ("C: A\nS: *B\nS: \\*D\n", ["C:A *S:B *S:D"]),
        ("C: *A    S: *A\n", ["*( C:A / S:A )"]),
        ("C: *A    S: A\n", ["*C:A", "S:A"]),
        ("First:   Then:\n-----    -----\nC: A     Repeat:\nS: B       S: C\n", ["C:A S:B", "*( S:C )"]),
    ],
)  # fmt: skip
def test_drawn_dialogs(text: str, rules: list[str]) -> None:
    assert dialogs(text) == rules


@pytest.mark.parametrize("text", ["Repeat:\nC: A\n", "Repeat:\n    C: A\n  S: B\n", "C: A\n    S: B\n"])
def test_a_drawing_that_cannot_be_read_is_reported(text: str) -> None:
    diagnostics = Diagnostics()
    assert parse_dialog(Source("d", text), text, diagnostics) == ()
    assert [found.code for found in diagnostics] == ["E705"]


def test_steps_know_their_places() -> None:
    text = "prose\n\n    Repeat:      Repeat:\n\n      C: HELLO     S: HUGZ\n"
    blank = "\n\n" + "\n".join(text.split("\n")[2:])
    (dialog,) = parse_dialog(Source("d", text), blank, Diagnostics())
    (step,) = dialog.steps()
    assert step.labels == (("C", "HELLO"), ("S", "HUGZ"))
    assert (str(step.span), step.span.end_column) == ("d:5:7", 15)


def test_a_line_may_go_on_below() -> None:
    text = 'Frame 0: "AB" (two bytes, representing\n         the HEADER)\nFrame 1: Target (string) all,\n   or some\nFrame 2: Empty\n'
    table = parse_frame_table(Source("d", text), text, Diagnostics())
    assert table is not None
    assert [(frame.kind, frame.span.line) for frame in table.frames] == [
        ("constant", 1),
        ("text", 3),
        ("empty", 5),
    ]
    assert table.frames[0].stands_for == "HEADER"


MAJORDOMO = """\
A REQUEST command consists of a multipart message of 4 or more frames, formatted as follows:

* Frame 0: Empty (zero bytes, invisible to the application)
* Frame 1: "MDPC01" (six bytes)
* Frame 2: Service name (printable string)
* Frames 3+: Request body (opaque binary)

A FORWARD command consists of 5 frames:

    * Frame 0: Empty frame
    * Frame 1: 0x02 (one byte)
    * Frame 2: Client address (envelope stack)
    * Frame 3: Empty (zero bytes, ends the envelope)
    * Frame 4: Body (opaque binary)
"""


def test_tables_without_markup_and_title(tmp_path: Path) -> None:
    path = tmp_path / "document.txt"
    path.write_text(MAJORDOMO, encoding="utf-8")
    lines = import_document(path, "demo").grammar_text.split("\n")
    assert lines[3] == "REQUEST         = empty header-request service body *more"
    assert lines[4] == "FORWARD         = empty command-forward address empty-2 body"
