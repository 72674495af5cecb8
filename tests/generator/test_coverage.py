"""The coverage report: what a document says that a compiled protocol does not account for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from specwire.generator.documents.coverage import Coverage, Decoded, check_coverage
from specwire.generator.documents.examples import find_examples
from specwire.generator.pipeline import compile_protocol
from tests.generator.documents import write_document
from tests.runtime.cli.commands import specwire

GRAMMAR = """\
harbour = C:DOCK S:BERTH
DOCK = signature %x01 length
BERTH = signature %x02 number
signature = %xAA %xB1
length = 2OCTET
number = OCTET
"""
PROFILE = """\
name = "harbour"

[roles.C]
name = "client"
socket = "DEALER"

[roles.S]
name = "server"
socket = "ROUTER"
"""
DOCUMENT = """\
# 90/HARBOUR

## License

You MAY copy this.

## Grammar

```abnf
harbour = C:DOCK S:BERTH
DOCK = signature %x01 length
BERTH = signature %x02 number
signature = %xAA %xB1
length = 2OCTET
number = OCTET
```

## Messages

Every message SHALL start with the signature %xAA %xB1.
The client SHALL send a DOCK command. The 'length' field has two octets.

- `number` - the place in the harbour, one octet.

If the harbour is full, the server
SHALL be silent. Ships are large.

A DOCK command for a ship of 5 metres:

```
00000000  aa b1 01 00 05                                    |.....|
```

A BERTH command:

    0xAA 0xB1 0x02 0x09
"""


def _folder(place: Path, profile: str = PROFILE, grammar: str = GRAMMAR) -> Path:
    folder = place / "grammars" / "harbour"
    folder.mkdir(parents=True)
    (folder / "grammar.abnf").write_text(grammar)
    (folder / "profile.toml").write_text(profile)
    return folder


def _no_decoder(frames: Sequence[bytes]) -> Decoded:
    return Decoded("", {}, "not decoded")


def _report(place: Path, document: str, profile: str = PROFILE, grammar: str = GRAMMAR) -> Coverage:
    folder = _folder(place, profile, grammar)
    path = write_document(place, document, "harbour.md")
    return check_coverage(path, folder, compile_protocol(folder), _no_decoder)


def test_a_condition_is_left_and_what_the_protocol_shows_is_accounted_for(tmp_path: Path) -> None:
    report = _report(tmp_path, DOCUMENT)
    assert [(found.section, found.line, found.text) for found in report.open] == [
        ("Messages", 25, "If the harbour is full, the server SHALL be silent.")
    ]
    assert report.open[0].words == ("SHALL",)
    assert report.rules == ()
    assert report.accounted == {
        "a constant": 1,
        "the sender of a message": 1,
        "a size": 2,
        "the example below it": 2,
    }


@pytest.mark.parametrize(
    ("sentence", "note"),
    [
        ("A message SHALL start with %xAA %xB2.", "no message has the constant octets AA B2"),
        ("The 'length' field has four octets.", "'length' has 2 octets in the grammar"),
        ("The server SHALL send a DOCK command.", "the server cannot send DOCK in the dialog"),
    ],
)
def test_a_sentence_that_differs_from_the_protocol_is_open(tmp_path: Path, sentence: str, note: str) -> None:
    (found,) = _report(tmp_path, f"# Harbour\n\n{sentence}\n").open
    assert (found.text, found.note) == (sentence, note)


def test_a_single_octet_may_be_one_of_several_values(tmp_path: Path) -> None:
    (found,) = _report(tmp_path, "# Harbour\n\nA quay SHALL be marked %x07.\n").open
    assert found.note == ""


def test_the_reply_to_an_unexpected_message_is_accounted_for_by_the_profile(tmp_path: Path) -> None:
    document = "# Harbour\n\nThe server SHALL answer an unexpected command with a BERTH command.\n"
    assert len(_report(tmp_path / "without", document).open) == 1
    with_reply = PROFILE + '\n[unexpected]\nS = "BERTH"\n'
    assert _report(tmp_path / "with", document, with_reply).accounted == {"[unexpected]": 1}


def test_a_name_that_is_an_ordinary_word_counts_only_where_it_is_written_as_a_name(tmp_path: Path) -> None:
    document = (
        "# Harbour\n\nThe length of a ship differs.\n\nA ship has a 'length'.\n\nThe length field differs.\n"
    )
    assert [found.line for found in _report(tmp_path, document).open] == [5, 7]


def test_entries_account_for_sentences_in_whatever_lines_they_are(tmp_path: Path) -> None:
    entries = """
[[coverage]]
text = "If the harbour is full, the server SHALL be silent"
why = "The server's business."

[[coverage]]
text = "words of another edition"
why = "They are gone."

[[coverage]]
section = "Messages"
text = "BERTH"
why = "Not used."
"""
    report = _report(tmp_path, DOCUMENT, PROFILE + entries)
    assert report.open == ()
    assert [entry.text for entry in report.stale] == ["words of another edition"]


def test_an_entry_for_a_section_accounts_for_all_its_sentences(tmp_path: Path) -> None:
    document = "# Harbour\n\n## Weather\n\nA ship SHALL wait.\n\nA ship MAY leave.\n"
    entry = '\n[[coverage]]\nsection = "Weather"\nwhy = "Not on the wire."\n'
    report = _report(tmp_path, document, PROFILE + entry)
    assert (report.accounted, report.open, report.is_complete) == ({"[[coverage]]": 2}, (), True)


def test_a_quotation_in_the_profile_accounts_for_its_sentence(tmp_path: Path) -> None:
    doc = '\n[types.length]\ndoc = "A ship SHALL never be longer than its berth."\n'
    assert (
        _report(tmp_path, "# Harbour\n\nA ship SHALL never be longer than its berth.\n", PROFILE + doc).open
        == ()
    )


def test_rules_that_differ_from_the_document_are_listed_with_their_lines(tmp_path: Path) -> None:
    document = DOCUMENT.replace("length = 2OCTET", "length = 4OCTET")
    assert [(line, change.was, change.now) for line, change in _report(tmp_path, document).rules] == [
        (14, "2OCTET", "4OCTET")
    ]


@pytest.mark.parametrize(
    ("text", "readings"),
    [
        ("0000  aa b1 01 00 05   .....", [(bytes.fromhex("aab1010005"),)]),
        ("00000000  aa b1 01 00  05       |.....|", [(bytes.fromhex("aab1010005"),)]),
        ("0000  aa b1\n0002  01 00 05", [(bytes.fromhex("aab1010005"),)]),
        ("0000: aab1 0100 05  .....", [(bytes.fromhex("aab1010005"),)]),
        ("01 02 03 ; three octets", [(b"\1\2\3",)]),
        ("0x01 0x02\n%x03.04", [(b"\1\2\3\4",), (b"\1\2", b"\3\4")]),
        ('Frame 0: empty\nFrame 1: "AB"\nFrame 2: 0x05', [(b"", b"AB", b"\5")]),
        ("Frame 0: empty\nFrame 1: the body", None),
        ("Frame 1: 0x01 0x02\nFrame 1: 0x03 0x04", [(b"\1\2",), (b"\3\4",)]),
        ("10 20", None),
        ("| flags |\n20  21  22", None),
        ("A value of 0x01 0x02 is wrong.", None),
        ("0000  aa b1\n0010  01 00 05", None),
    ],
)
def test_examples_are_lines_of_octets(text: str, readings: list[tuple[bytes, ...]] | None) -> None:
    found = [reading for example in find_examples(text.split("\n"), ()) for reading in example.readings]
    assert found == (readings or [])


def test_the_command_decodes_the_examples_and_ends_with_2_if_something_is_open(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    grammars = str(_folder(tmp_path).parent)
    path = str(write_document(tmp_path, DOCUMENT, "harbour.md"))
    outcome = specwire(capfd, "check", "harbour", "--grammars", grammars, "--coverage", path, "--json")
    coverage = json.loads(outcome.out)["coverage"]
    assert outcome.status == 2
    assert [(row["line"], row["message"], row["fields"], row["error"]) for row in coverage["examples"]] == [
        (31, "DOCK", {"length": 5}, None),
        (36, "BERTH", {"number": 9}, None),
    ]
    text = specwire(capfd, "check", "harbour", "--grammars", grammars, "--coverage", path).out
    assert "Messages\n  line 25 [SHALL]: If the harbour is full, the server SHALL be silent.\n" in text
    assert "line 31: DOCK length = 5\n" in text


def test_an_example_of_another_message_than_its_sentence_names_is_an_error(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    grammars = str(_folder(tmp_path).parent)
    document = "# Harbour\n\nA DOCK command:\n\n    AA B1 02 09\n\nThen:\n\n    AA B1 03 09\n"
    path = str(write_document(tmp_path, document, "harbour.md"))
    outcome = specwire(capfd, "check", "harbour", "--grammars", grammars, "--coverage", path)
    assert outcome.status == 2
    assert "line 5: the text above names DOCK, but the octets are BERTH; octets aa b1 02 09" in outcome.out
    assert "line 9: harbour.id at octet 2: expected 0x01 or 0x02, found 0x03" in outcome.out


def test_a_document_that_is_accounted_for_ends_with_0(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    grammars = str(_folder(tmp_path).parent)
    path = str(write_document(tmp_path, "# Harbour\n\nShips are large.\n", "harbour.md"))
    assert specwire(capfd, "check", "harbour", "--grammars", grammars, "--coverage", path).status == 0
    assert specwire(capfd, "check", "--grammars", grammars, "--coverage", path).status == 2
