"""The published documents give the grammars of this repository: rules equal, comments our own.

These tests need copies of the documents, which are not part of the repository; without, they are skipped.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from specwire.generator.abnf import parse_grammar
from specwire.generator.diagnostics import Diagnostics, Source
from specwire.generator.documents.importing import Imported, import_document
from specwire.generator.documents.store import write_imported
from specwire.generator.pipeline import compile_protocol
from tests.generator.documents import PUBLISHED, ROOT, published

GRAMMARS = ROOT / "grammars"
OURS = [protocol for protocol in PUBLISHED if (GRAMMARS / protocol / "grammar.abnf").is_file()]


def rules(text: str) -> list[object]:
    """Return name, role, operator and definition of every rule, in order."""
    rulelist = parse_grammar(Source("", text), dialect="zeromq", diagnostics=Diagnostics())
    return [(rule.name, rule.role, rule.incremental, rule.definition) for rule in rulelist.rules]


def imported(protocol: str, folder: Path | None = None) -> Imported:
    """Import the published document of a protocol."""
    return import_document(published(protocol), protocol, folder=folder, shown=f"grammars/{protocol}")


@pytest.mark.parametrize("protocol", OURS)
def test_our_grammar_is_what_the_document_gives(protocol: str) -> None:
    ours = (GRAMMARS / protocol / "grammar.abnf").read_text(encoding="utf-8")
    assert rules(imported(protocol).grammar_text) == rules(ours)


@pytest.mark.parametrize("protocol", OURS)
def test_importing_again_changes_nothing(protocol: str) -> None:
    """The digest in each profile is that of the document, and no erratum is out of date."""
    again = imported(protocol, GRAMMARS / protocol)
    assert again.changes == ()
    assert again.profile_text == (GRAMMARS / protocol / "profile.toml").read_text(encoding="utf-8")
    assert "W708" not in [diagnostic.code for diagnostic in again.diagnostics]


@pytest.mark.parametrize(
    ("protocol", "lines", "markup"),
    [
        ("filemq", [(33, 103)], "wikidot"),
        ("libfilemq", [(3, 83)], "plain"),
        ("flux", [(183, 234)], "directive"),
        ("cmb1", [(131, 198)], "plain"),
        ("cmb1_json", [(134, 199)], "plain"),
        ("zre", [(105, 178)], "fence"),
    ],
)
def test_where_the_grammar_stands(protocol: str, lines: list[tuple[int, int]], markup: str) -> None:
    blocks = imported(protocol).blocks
    assert [(block.first_line, block.last_line) for block in blocks] == lines
    assert {block.markup for block in blocks} == {markup}


@pytest.mark.parametrize(
    ("protocol", "title", "edition"),
    [
        ("filemq", "File Message Queuing Protocol", "FILEMQ v2, draft"),
        ("flux", "Flux Message Protocol", "Flux v1, draft"),
        ("cmb1", "Flux Comms Message Broker Protocol", "CMB1 v1, draft"),
        ("norfab", "NORFAB Protocol", "NORFAB, experimental"),
        ("zre", "ZeroMQ Realtime Exchange Protocol", "36/ZRE, stable"),
        ("zmtp", "ZeroMQ Message Transport Protocol", "ZMTP v3.1, draft"),
    ],
)
def test_title_and_edition(protocol: str, title: str, edition: str) -> None:
    facts = imported(protocol).facts
    assert (facts.title, facts.edition) == (title, edition)


def test_every_block_of_zmtp_is_found() -> None:
    """Its grammar is spread over twelve fences, between C, traces and drawings of octets."""
    blocks = imported("zmtp").blocks
    assert [block.first_line for block in blocks] == [
        84,
        242,
        286,
        338,
        364,
        405,
        412,
        438,
        446,
        454,
        508,
        518,
    ]


def test_contradictions_in_norfab_quote_both_places() -> None:
    found = {diagnostic.code: diagnostic.message for diagnostic in imported("norfab").diagnostics}
    assert (
        "3 frames (line 128)" in found["W702"]
        and "lists 5" in found["W702"]
        and "(line 137)" in found["W702"]
    )
    assert "representing POST)' (line 213)" in found["W703"] and "(line 153)" in found["W703"]
    assert "HEARTBEAT" in found["W709"]


def test_norfab_compiles_as_it_was_imported(tmp_path: Path) -> None:
    """Its dialog's HEARTBEAT is mended by an erratum that import proposes."""
    folder = tmp_path / "norfab"
    write_imported(imported("norfab"), folder)
    compiled = compile_protocol(folder)
    assert [message.name for message in compiled.protocol.messages] == [
        "OPEN", "READY", "KEEPALIVE", "DISCONNECT", "POST", "RESPONSE", "GET", "DELETE",
    ]  # fmt: skip


@pytest.mark.parametrize("protocol", ["filemq", "libfilemq", "flux", "zre"])
def test_what_import_wrote_compiles_unedited(protocol: str, tmp_path: Path) -> None:
    folder = tmp_path / protocol
    write_imported(imported(protocol), folder)
    assert compile_protocol(folder).protocol.messages
