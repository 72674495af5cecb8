"""The profile's `redact`: which fields are content, and entries that name none."""

from __future__ import annotations

from pathlib import Path

import pytest

from specwire.generator.diagnostics import Severity, SpecError
from specwire.generator.pipeline import compile_protocol
from tests.runtime.own_packages import write_grammar


def test_entries_name_fields_of_all_messages_or_of_one(tmp_path: Path) -> None:
    """Absent is not the same as empty."""
    for name, more, found in (
        ("a", "", None),
        ("b", "redact = []", ()),
        ("c", 'redact = ["symbol"]', (("Subscribe", ("symbol",)), ("Quote", ("symbol",)))),
        ("d", 'redact = ["quote.symbol"]', (("Quote", ("symbol",)),)),
    ):
        folder = write_grammar(tmp_path / f"grammars-{name}", name, more) / name
        assert compile_protocol(folder, shown=name).protocol.redact == found


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ("symbl", "there is no field with content 'symbl'"),
        ("price", "there is no field with content 'price'"),
        ("subscribe.price", "there is no field with content 'price'"),
        ("quot.symbol", "there is no message 'quot'"),
    ],
)
def test_an_entry_without_a_field_is_a_fault(entry: str, sentence: str, tmp_path: Path) -> None:
    """An integer cannot be shortened."""
    folder = write_grammar(tmp_path / "grammars", "ticker", f'redact = ["{entry}"]') / "ticker"
    with pytest.raises(SpecError) as caught:
        compile_protocol(folder, shown="ticker")
    (fault,) = [found for found in caught.value.diagnostics if found.severity is Severity.ERROR]
    assert (fault.code, fault.message, fault.span.line) == ("E511", sentence, 4)
