"""How findings are collected, ordered and shown."""

from __future__ import annotations

import pytest

from specwire.generator.diagnostics import (
    Diagnostic,
    Diagnostics,
    Severity,
    Source,
    Span,
    SpecError,
    render_all,
)

SOURCE = Source("grammar.abnf", "first = a\r\n\tsecond = b | c\nthird =\n      d\n")


def finding(
    line: int, column: int, end_column: int, *, end_line: int = 0, help: str | None = None
) -> Diagnostic:
    span = Span(SOURCE, line, column, end_line or line, end_column)
    return Diagnostic(Severity.ERROR, "E103", span, "what is wrong", help)


def test_the_caret_stands_under_the_place() -> None:
    assert finding(1, 9, 10, help="what to do").render() == (
        "grammar.abnf:1:9: error[E103]: what is wrong\n"
        "   1 | first = a\n"
        "               ^\n"
        "     = help: what to do"
    )


def test_tabs_stay_tabs_under_the_line() -> None:
    assert finding(2, 13, 14).render().endswith("\n   2 | \tsecond = b | c\n       \t           ^")


def test_a_place_of_several_lines_is_shown_on_the_first() -> None:
    assert finding(3, 1, 8, end_line=4).render().endswith("\n   3 | third =\n       ^^^^^^^")


def test_the_end_of_the_text_has_no_line_to_show() -> None:
    assert finding(5, 1, 1).render() == "grammar.abnf:5:1: error[E103]: what is wrong"


def test_lines_are_counted_as_editors_count_them() -> None:
    source = Source("g", "a\x0cb\u2028c\nd\r\ne")
    assert [source.line(number) for number in range(5)] == ["", "a\x0cb\u2028c", "d", "e", ""]


def test_findings_come_in_the_order_of_their_places_and_once() -> None:
    diagnostics = Diagnostics()
    span = Span(SOURCE, 3, 1, 3, 6)
    diagnostics.error("E120", span, "no definition")
    diagnostics.warning("W103", Span(SOURCE, 2, 13, 2, 14), "a bar")
    diagnostics.extend([Diagnostic(Severity.ERROR, "E120", span, "no definition")])
    assert [found.code for found in diagnostics] == ["W103", "E120"]
    assert [found.code for found in diagnostics.errors] == ["E120"]


def test_errors_are_raised_with_everything_that_was_found() -> None:
    diagnostics = Diagnostics()
    diagnostics.warning("W103", Span(SOURCE, 2, 13, 2, 14), "a bar")
    diagnostics.raise_errors()
    diagnostics.error("E120", Span(SOURCE, 3, 1, 3, 6), "no definition")
    with pytest.raises(SpecError) as raised:
        diagnostics.raise_errors()
    assert [found.code for found in raised.value.diagnostics] == ["W103", "E120"]
    assert "grammar.abnf:3:1: error[E120]: no definition" in str(raised.value)


def test_spans_join() -> None:
    joined = Span(SOURCE, 1, 1, 1, 6).to(Span(SOURCE, 4, 7, 4, 8))
    assert (str(joined), joined.end_line, joined.end_column) == ("grammar.abnf:1:1", 4, 8)


def dialect(code: str, *lines: int, source: Source = SOURCE) -> list[Diagnostic]:
    spans = (Span(source, line, 1, line, 2) for line in lines)
    return [Diagnostic(Severity.WARNING, code, span, "odd", "read as even") for span in spans]


@pytest.mark.parametrize(
    ("lines", "note"),
    [
        ((1,), ""),
        ((1, 1), "\n     = note: and 1 more place, in line 1"),
        ((1, 2), "\n     = note: and 1 more place, in line 2"),
        ((1, 2, 2, 3, 4), "\n     = note: and 4 more places, in lines 2-4"),
        ((1, 2, 4), "\n     = note: and 2 more places, in lines 2 and 4"),
    ],
)
def test_a_notation_is_shown_once_in_a_file(lines: tuple[int, ...], note: str) -> None:
    first = "grammar.abnf:1:1: warning[W103]: odd\n   1 | first = a\n       ^\n     = help: read as even"
    assert render_all(dialect("W103", *lines)) == first + note


def test_only_notation_is_gathered_and_only_in_one_file() -> None:
    other = Source("other.abnf", "x")
    found = [
        *dialect("W103", 1, 2),
        *dialect("W104", 2),
        *dialect("W401", 2, 3),
        *dialect("W103", 1, source=other),
    ]
    heads = [line for line in render_all(found).split("\n") if "warning" in line]
    assert [(line.split(":")[0], line[line.index("[") + 1 :][:4], line.split(":")[1]) for line in heads] == [
        ("grammar.abnf", "W103", "1"), ("grammar.abnf", "W104", "2"), ("grammar.abnf", "W401", "2"),
        ("grammar.abnf", "W401", "3"), ("other.abnf", "W103", "1"),
    ]  # fmt: skip
