"""Measure the compiler, in one process: its passes over all packages, and its parser against another one.

The yardstick of the parser is that of the `abnf` package from PyPI, over the IETF grammars that the package
holds: both read the same text in the same run. Beyond that, how long the grammars take that are made to be
too much (`tests.generator.hostile`). Ratios are what counts: the machine's speed is in both numbers.

Ends with status 1 where the parser is less than `LEAST_RATIO` times as fast as the yardstick.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from unittest.mock import patch

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from specwire.generator import packages
from specwire.generator.abnf.parser import parse_grammar
from specwire.generator.abnf.sources import read_rules
from specwire.generator.abnf.syntax import Rulelist
from specwire.generator.diagnostics import Diagnostics, Source, SpecError
from specwire.generator.documents.importing import import_document
from specwire.generator.passes.resolve import resolve_names
from specwire.generator.pipeline import compile_protocol
from specwire.generator.profile.reader import load_profile
from tests.generator.abnf.test_conformance import MODULES, rules_of
from tests.generator.hostile import HOSTILE

LEAST_RATIO = 40.0
ROUNDS = 3
GRAMMARS = sorted((ROOT / "grammars").iterdir())
DOCUMENTS = sorted((ROOT / "tests/golden/import").glob("*/document.*"))

Row = tuple[str, float, float]
"""What, seconds, and the ratio that the table shows beside them."""


def best_s(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Return the seconds of the fastest of some rounds: all else that a machine does only adds time."""
    best = float("inf")
    for _ in range(rounds):
        begun = perf_counter()
        work()
        best = min(best, perf_counter() - begun)
    return best


def passes() -> list[Row]:
    """Return the seconds of each pass over all packages, and its share of the whole."""
    compiled = [compile_protocol(folder) for folder in GRAMMARS]
    protocols = [compilation.protocol for compilation in compiled]
    imports = best_s(_import_all)
    reading = best_s(lambda: [_read(folder) for folder in GRAMMARS])
    read = [_read(folder) for folder in GRAMMARS]
    resolving = best_s(lambda: [resolve_names(rules, diagnostics=Diagnostics()) for rules in read])
    compiling = best_s(lambda: [compile_protocol(folder) for folder in GRAMMARS])
    writing = best_s(lambda: packages.package_files(protocols, compilations=compiled))
    with patch.object(packages, "format_sources", lambda sources: sources):
        emitting = best_s(lambda: packages.package_files(protocols, compilations=compiled))
    rows = [
        ("import (documents of the tests)", imports),
        ("parse: profile, errata, ABNF", reading),
        ("resolve: names, recursion, alternatives", resolving),
        ("compile: types, layout, dialogs, IR", compiling - reading - resolving),
        ("emit: templates", emitting),
        ("format: ruff", writing - emitting),
    ]
    total = sum(seconds for _, seconds in rows)
    return [*((name, seconds, seconds / total) for name, seconds in rows), ("in total", total, 1.0)]


def parsers() -> list[Row]:
    """Return the seconds that the yardstick and our parser take for the same rules, and how often ours fits."""
    texts = ["\n".join(rules_of(module)) + "\n" for module in MODULES]
    rule = importlib.import_module("abnf.parser").ABNFGrammarRule("rulelist")
    network = [text.replace("\n", "\r\n") for text in texts]
    _parse("a = b\n")  # builds our parser
    gc.collect()
    gc.freeze()  # what the process holds already is no work of either
    yardstick = ours = float("inf")
    for _ in range(ROUNDS):  # in turn, so that what else the machine does costs both
        yardstick = min(yardstick, best_s(lambda: [rule.parse_all(text) for text in network], rounds=1))
        ours = min(ours, best_s(lambda: list(map(_parse, texts))))
    return [("abnf package", yardstick, 1.0), ("specwire", ours, yardstick / ours)]


def hostile() -> list[Row]:
    """Return the seconds until each hostile grammar is diagnosed, and the ratio to compiling filemq."""
    unit = best_s(lambda: compile_protocol(ROOT / "grammars/filemq"))
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, case in HOSTILE.items():
            grammar = case.grammar()
            octets = grammar.encode() if isinstance(grammar, str) else grammar
            Path(folder, "grammar.abnf").write_bytes(octets)
            Path(folder, "profile.toml").write_text(f'name = "demo"\n{case.profile()}', encoding="utf-8")
            seconds = best_s(lambda: _diagnose(Path(folder)), rounds=1)
            rows.append((name, seconds, seconds / unit))
    return rows


def _import_all() -> None:
    for document in DOCUMENTS:
        with contextlib.suppress(SpecError):
            import_document(document, "demo")


def _read(folder: Path) -> list[Rulelist]:
    diagnostics = Diagnostics()
    return list(
        read_rules(load_profile(folder, diagnostics, shown=folder.name), diagnostics, shown=folder.name)
    )


def _parse(text: str) -> None:
    diagnostics = Diagnostics()
    parse_grammar(Source("g", text), dialect="rfc5234", diagnostics=diagnostics)
    assert not diagnostics.errors


def _diagnose(folder: Path) -> None:
    with contextlib.suppress(SpecError):
        compile_protocol(folder)


def show(title: str, heads: Sequence[str], rows: Sequence[Row], form: str) -> None:
    """Print one table."""
    table = Table(title=title, title_justify="left")
    table.add_column(heads[0])
    for head in heads[1:]:
        table.add_column(head, justify="right")
    for name, seconds, ratio in rows:
        table.add_row(name, f"{seconds * 1000:,.0f}", form.format(ratio))
    Console(width=100).print(table)


def main() -> int:
    """Measure all, print tables, or JSON with ``--json``; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    as_json = parser.parse_args().json
    found = {"parsers": parsers(), "passes": passes(), "hostile": hostile()}
    if as_json:
        json.dump(found, sys.stdout, indent=2)
        sys.stdout.write("\n")
    else:
        show(f"All {len(GRAMMARS)} packages, by pass", ("pass", "ms", "share"), found["passes"], "{:.1%}")
        show(
            "The IETF grammars of the abnf package",
            ("parser", "ms", "times as fast"),
            found["parsers"],
            "{:.1f}",
        )
        show("Grammars made to be too much", ("grammar", "ms", "x filemq"), found["hostile"], "{:.1f}")
    ratio = found["parsers"][-1][2]
    if ratio < LEAST_RATIO:
        sys.stderr.write(
            f"the parser is {ratio:.1f} times as fast as the abnf package's, not {LEAST_RATIO:g} times\n"
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
