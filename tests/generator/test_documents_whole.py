"""Import of whole documents, one or more for each markup in which specifications are published.

A golden case has one difficulty each; a whole document combines many. `tests/data/documents` has
the documents, which were written for these tests, and the rules that each must give, in the ABNF of
RFC 5234. Only `zre.md` has the rules of a published document, 36/ZRE: those of `grammars/zre`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from specwire.generator.abnf.parser import parse_grammar
from specwire.generator.diagnostics import Diagnostics, Source
from specwire.generator.documents.importing import Imported, import_document
from specwire.generator.documents.store import write_imported
from specwire.generator.pipeline import compile_protocol
from tests.generator.documents import DOCUMENTS, ROOT
from tests.generator.test_layouts import generated


@dataclass(frozen=True)
class Document:
    """Document with the expected results of its import."""

    file: str
    title: str
    edition: str
    markup: str
    lines: tuple[tuple[int, int], ...]
    """First and last line of each block that has rules, frames or a dialog."""
    rules: Path
    messages: tuple[str, ...] = ()
    """Messages of the package generated from the unedited import; none if that has a gap."""
    octets: Mapping[str, tuple[str, dict[str, object]]] = field(default_factory=dict)
    """Frames in hexadecimal, separated by commas, with the name and the fields of the message."""

    def __str__(self) -> str:
        return self.file

    @property
    def protocol(self) -> str:
        return self.file.partition(".")[0]


FERRY = Document(
    "ferry.wikidot",
    "Ferry Booking Protocol",
    "FERRY v4, draft",
    "wikidot",
    ((23, 86),),
    DOCUMENTS / "ferry.abnf",
    ("Knock", "KnockOk", "Book", "BookOk", "Pay", "Ticket", "Hum", "HumOk", "Bye", "Full", "What"),
    {
        "fe1101 05 4645525259 04": ("Knock", {}),
        "fe1103 02 01 07 51554555453d31": ("Book", {"deck": 2, "options": (("QUEUE", "1"),)}),
        "fe1105 0000010000000000": ("Pay", {"amount": 2**40}),
        "fe1106 00000007 04 422d5831, 00ff": (
            "Ticket", {"number": 7, "plate": "B-X1", "picture": b"\x00\xff"},
        ),
        "fe1180 02 6e6f": ("Full", {"reason": "no"}),
    },
)  # fmt: skip
"""Has senders before messages, a multi-line dialog, `|`, a repeated rule, and continued rules."""

POST = Document(
    "post.bnf",
    "Letter Post Protocol",
    "POST",
    "plain",
    ((3, 56),),
    DOCUMENTS / "post.abnf",
    ("Hello", "Letter", "LetterOk", "Parcel", "Bye", "Sorry"),
    {
        "aac701 04 504f5354 0003": ("Hello", {}),
        "aac704 0000000000000001 00000002 4f6b 00000001 03 526564 00000001 35": (
            "Letter", {"sequence": 1, "address": "Ok", "stamps": (("Red", "5"),)},
        ),
        "aac710 0000000000000010 01 00000002 00ff": (
            "Parcel", {"sequence": 16, "last": 1, "piece": b"\x00\xff"},
        ),
        "aac780 02 6e6f": ("Sorry", {"reason": "no"}),
    },
)  # fmt: skip
"""zproto listing: indented, `|`, `_` in names, trailing spaces, and a rule that names itself."""

BEACON = Document(
    "beacon.rst",
    "Beacon Message Protocol",
    "Beacon v2, draft",
    "directive",
    ((55, 92),),
    DOCUMENTS / "beacon.abnf",
    ("Call", "Answer", "Flash"),
    {
        "9b02 01 01 00000001 ffffffff 00000000": (
            "Call", {"flags": 1, "userid": 1, "rank": 2**32 - 1, "tag": 0},
        ),
        "9b02 02 10 ffffffff 00000027 00000009": (
            "Answer", {"flags": 16, "userid": 2**32 - 1, "errnum": 39, "tag": 9},
        ),
        "9b02 04 00 00000000 00000005 00000000": ("Flash", {"flags": 0, "userid": 0, "sequence": 5}),
    },
)  # fmt: skip
"""Has directives, figures, notes and a list-table around one block; `0xFF`, unused constants."""

BELLS = ("Bell Tower Protocol", "BELL1 v1, draft", "plain")
TOWER = Document("tower.adoc.txt", *BELLS, ((48, 107),), DOCUMENTS / "tower-adoc.abnf")
"""Text copied from a web page: no markup, but tabs, bullets and typographic characters.

A message and the rule of its sender have the same name.
"""
LATER_TOWER = Document("tower.md.txt", *BELLS, ((46, 105),), DOCUMENTS / "tower-md.abnf")
"""Another edition of the same document, copied without its headings."""

ZRE = Document(
    "zre.md",
    "ZeroMQ Realtime Exchange Protocol",
    "36/ZRE, stable",
    "fence",
    ((105, 178),),
    ROOT / "grammars" / "zre" / "grammar.abnf",
    ("Hello", "Whisper", "Shout", "Join", "Leave", "Ping", "PingOk"),
    {"aaa106 02 0001": ("Ping", {"version": 2, "sequence": 1})},
)
"""Has a YAML header, fenced octet diagrams and grammar, and indented lines that are not rules."""

DEPOT = Document(
    "depot.md",
    "DEPOT Protocol",
    "DEPOT, experimental",
    "fence",
    (
        (33, 38), (48, 53), (61, 67), (77, 85), (93, 101), (109, 117), (125, 129),
        (142, 154), (162, 174), (180, 185),
    ),
    DOCUMENTS / "depot.abnf",
    ("Open", "Ready", "Alive", "Order", "Result", "Cancel", "Close"),
    {
        ", 445056413031, 01, 6e": ("Ready", {"tour": "n"}),
        ", 445044453031, 02": ("Alive", {"header": "DPDE01", "tour": None, "body": None}),
        ", 445056413031, 05, 6e, 7531, 323030, , 00, ff": (
            "Result",
            {
                "header": "DPVA01", "tour": "n", "uuid": "u1", "status": b"200",
                "body": b"", "more": (b"\x00", b"\xff"),
            },
        ),
    },
)  # fmt: skip
"""Has frame tables, drawn dialogs, typographic quotation marks, contradictions, two columns."""

WIRE = Document(
    "wire.md",
    "Two Wire Transport Protocol",
    "WIRE v2.1, draft",
    "fence",
    ((20, 61), (73, 78), (84, 86), (104, 106), (114, 115), (121, 121), (127, 129), (133, 135)),
    DOCUMENTS / "wire.abnf",
    ("Greeting", "Command", "MessageMore", "MessageLast", "Ready", "Subscribe", "Cancel", "Join", "Leave"),
    {
        "00 03 414243": ("MessageLast", {"message_body": b"ABC"}),
        "04 0a 09 535542534352494245": ("Subscribe", {"subscription": b""}),
        "04 08 06 43414e43454c 67": ("Cancel", {"subscription": b"g"}),
    },
)
"""Has a grammar in eight fences among C code, traces and diagrams; string ranges, `31%x00`."""

ALL = [FERRY, POST, BEACON, TOWER, LATER_TOWER, ZRE, DEPOT, WIRE]
COMPLETE = [document for document in ALL if document.messages]
every_document = pytest.mark.parametrize("document", ALL, ids=str)


def imported(document: Document, folder: Path | None = None) -> Imported:
    """Import a document as the protocol with the name of its file."""
    path = DOCUMENTS / document.file
    return import_document(path, document.protocol, folder=folder, shown=f"grammars/{document.protocol}")


def rules(text: str) -> list[object]:
    """Return name, role, operator and definition of every rule, in order."""
    rulelist = parse_grammar(Source("", text), dialect="zeromq", diagnostics=Diagnostics())
    return [(rule.name, rule.role, rule.incremental, rule.definition) for rule in rulelist.rules]


@every_document
def test_import_finds_exactly_the_rules(document: Document) -> None:
    expected = document.rules.read_text(encoding="utf-8")
    assert rules(imported(document).grammar_text) == rules(expected)


@every_document
def test_lines_and_markup_of_the_blocks(document: Document) -> None:
    blocks = imported(document).blocks
    assert tuple((block.first_line, block.last_line) for block in blocks) == document.lines
    assert {block.markup for block in blocks} == {document.markup}


@every_document
def test_title_and_edition(document: Document) -> None:
    facts = imported(document).facts
    assert (facts.title, facts.edition) == (document.title, document.edition)


@every_document
def test_importing_again_changes_nothing(document: Document, tmp_path: Path) -> None:
    """The errata that the first import proposed still apply."""
    folder = tmp_path / document.protocol
    write_imported(imported(document), folder)
    again = imported(document, folder)
    assert again.changes == ()
    assert again.profile_text == (folder / "profile.toml").read_text(encoding="utf-8")
    assert "W708" not in [diagnostic.code for diagnostic in again.diagnostics]


def test_contradictions_quote_both_places() -> None:
    found = {diagnostic.code: diagnostic.message for diagnostic in imported(DEPOT).diagnostics}
    assert (
        "3 frames (line 58)" in found["W702"] and "lists 5" in found["W702"] and "(line 67)" in found["W702"]
    )
    assert "representing ORDER)' (line 113)" in found["W703"] and "(line 81)" in found["W703"]
    assert "HEARTBEAT" in found["W709"]


def test_a_value_that_a_comment_demands_is_demanded(tmp_path: Path) -> None:
    """``protocol = string ; Must be "FERRY"``: FERRX in its place is refused."""
    folder = tmp_path / "ferry"
    write_imported(imported(FERRY), folder)
    with generated(tmp_path / "packages", compile_protocol(folder).protocol) as package:
        assert package.decode([bytes.fromhex("fe1101054645525259 04")]) == package.Knock()
        with pytest.raises(package.DecodeError, match="protocol"):
            package.decode([bytes.fromhex("fe1101054645525258 04")])


@pytest.mark.parametrize("document", COMPLETE, ids=str)
def test_an_unedited_import_compiles(document: Document, tmp_path: Path) -> None:
    """The generated package decodes and encodes octets that were written by hand."""
    folder = tmp_path / document.protocol
    write_imported(imported(document), folder)
    with generated(tmp_path / "packages", compile_protocol(folder).protocol) as package:
        assert tuple(package.MESSAGES) == document.messages
        for octets, (name, fields) in document.octets.items():
            frames = [bytes.fromhex(frame) for frame in octets.split(",")]
            message = package.decode(frames)
            assert (type(message).__name__, message.to_dict()) == (name, fields), octets
            assert message.encode() == frames
