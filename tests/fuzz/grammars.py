"""What must hold for any text that a person gives the generator: it is read, or refused in words."""

from __future__ import annotations

import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path

from specwire.generator.abnf.dialect import Dialect
from specwire.generator.abnf.parser import parse_grammar
from specwire.generator.abnf.syntax import Rulelist, write_grammar
from specwire.generator.diagnostics import Diagnostic, Diagnostics, Source, SpecError, render_all
from specwire.generator.documents.frametable import parse_frame_table
from specwire.generator.documents.importing import import_document
from specwire.generator.profile.reader import load_profile
from tests.fuzz.codecs import demand


def abnf_check() -> Callable[[bytes], None]:
    """Return the check of the ABNF parser, in both dialects."""

    def check(octets: bytes) -> None:
        text = octets.decode("utf-8", "surrogateescape")
        strict, refused = _parsed(text, "rfc5234")
        tolerant, more = _parsed(text, "zeromq")
        if not refused.errors:
            demand(not more.errors, "what the standard allows the dialect reads too")
            demand(strict == _parsed(write_grammar(strict), "rfc5234")[0], "written and read again")
        for read, found in ((strict, refused), (tolerant, more)):
            demand(bool(read.rules or found.errors), "a text is read or refused")
            _check_diagnostics(found, text)

    return check


def _parsed(text: str, dialect: Dialect) -> tuple[Rulelist, Diagnostics]:
    diagnostics = Diagnostics()
    return parse_grammar(Source("g", text), dialect=dialect, diagnostics=diagnostics), diagnostics


def _check_diagnostics(found: Diagnostics | tuple[Diagnostic, ...], text: str) -> None:
    render_all(found)
    for one in found:
        demand(bool(one.render()), "what is found can be shown")
        demand(one.span.line >= 1 and one.span.column >= 1, "what is found has a place")
        line = one.span.source.line(one.span.line)
        demand(one.span.column <= len(line) + 1, "what is found is in its line")


def frame_table_check() -> Callable[[bytes], None]:
    """Return the check of the reader of frame tables."""

    def check(octets: bytes) -> None:
        text = octets.decode("utf-8", "surrogateescape")
        diagnostics = Diagnostics()
        table = parse_frame_table(Source("d", text), text, diagnostics)
        demand((table is None) == bool(diagnostics.errors), "a table is read or refused")
        _check_diagnostics(diagnostics, text)

    return check


def document_check() -> Callable[[bytes], None]:
    """Return the check of the importer: what it makes of a document can be read again."""
    folder = tempfile.TemporaryDirectory(prefix="specwire-fuzz-")

    def check(octets: bytes) -> None:
        path = Path(folder.name, "document.txt")
        path.write_bytes(octets)
        try:
            imported = import_document(path, "demo")
        except SpecError as refused:
            demand(any(one.severity == "error" for one in refused.diagnostics), "a refusal says why")
            _check_diagnostics(refused.diagnostics, "")
            return
        demand(tomllib.loads(imported.profile_text)["name"] == "demo", "the profile can be read")
        rulelist, found = _parsed(imported.grammar_text, "zeromq")
        demand(len(rulelist.rules) == imported.rules > 0 and not found.errors, "the grammar can be read")

    return check


def profile_check() -> Callable[[bytes], None]:
    """Return the check of the reader of profiles."""
    folder = tempfile.TemporaryDirectory(prefix="specwire-fuzz-")
    Path(folder.name, "demo").mkdir()

    def check(octets: bytes) -> None:
        protocol = Path(folder.name, "demo")
        (protocol / "profile.toml").write_bytes(octets)
        diagnostics = Diagnostics()
        try:
            load_profile(protocol, diagnostics, shown="demo")
        except SpecError as refused:
            demand(any(one.severity == "error" for one in refused.diagnostics), "a refusal says why")
            _check_diagnostics(refused.diagnostics, "")
            return
        _check_diagnostics(diagnostics, "")

    return check
