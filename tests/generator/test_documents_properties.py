"""Whatever a document holds, importing it gives a grammar or a refusal, and what it gives can be read again."""

from __future__ import annotations

import tomllib
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specwire.generator.abnf.parser import parse_grammar
from specwire.generator.diagnostics import Diagnostics, Source, SpecError
from specwire.generator.documents.importing import import_document
from tests.examples import examples

PIECES = (
    "# Title", "**Bold**", "", "", "prose = of some kind, it says", "```", "```abnf", "~~~~~", "::", ".. code:: abnf",
    "----", "[source]", "[[code]]", "[[/code]]", "\f", "RFC 1 Title May 2020", "Baker [Page 3]", "  ",
    "a = %x01 b c", "    a = %x01 b c", "\tb = OCTET", "c = 4OCTET ; number", "C:m = %x02 b", "A = C:M ( S:n / S:x )",
    "public key  = b", "d = a | b", "/ c", "      c", "; a comment", "# a comment", "// another",
    "e = “q” %x03", "a = 2b", "x = x03 status code", "f = %signature", "C: OPEN", "S: *CLOSE", "Repeat:", "    C: OPEN",
    "    ...", "C: OPEN    S: CLOSE", "One:    Two:", "----    ----", "An OPEN command consists of 3 frames:",
    "CLOSE command", "-------------", "Frame 0: Empty frame", "* Frame 1: “AB” or \"C\" (two bytes)", "Frame 2: 0x04",
    "Frames 3+: Body (opaque binary), if OK", "Frame 4: 0000", "Frame 5: <empty>", "## The x.y Service",
    "with 1 frame, as follows:", "\x0b", "\u2028", "=", "=/ a", "a ::= b",
)  # fmt: skip


@settings(
    max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.sampled_from(PIECES), max_size=40), st.booleans())
def test_any_document_is_imported_or_refused(tmp_path: Path, lines: list[str], comments: bool) -> None:
    path = tmp_path / "document.txt"
    path.write_text("\n".join(lines), encoding="utf-8", newline="")
    try:
        imported = import_document(path, "demo", comments=comments)
    except SpecError as refused:
        assert any(found.severity == "error" for found in refused.diagnostics)
        return
    assert tomllib.loads(imported.profile_text)["name"] == "demo"
    diagnostics = Diagnostics()
    rulelist = parse_grammar(Source("", imported.grammar_text), dialect="zeromq", diagnostics=diagnostics)
    assert len(rulelist.rules) == imported.rules > 0 and not diagnostics.errors
    last = len(lines) + sum(line in ("\x0b", "\u2028") for line in lines)
    assert all(1 <= found.span.line <= last for found in imported.diagnostics)
