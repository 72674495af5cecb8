"""What holds for every grammar: text and tree say the same, and any text is read or refused in words."""

from __future__ import annotations

import string
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from specwire.generator.abnf.dialect import Dialect
from specwire.generator.abnf.parser import parse_grammar
from specwire.generator.abnf.syntax import (
    Alternation,
    CharVal,
    Comment,
    Concatenation,
    Element,
    NumRange,
    NumVal,
    Option,
    ProseVal,
    Reference,
    Repetition,
    Rule,
    Rulelist,
    write_grammar,
)
from specwire.generator.diagnostics import Diagnostics, Source, Span
from specwire.generator.passes.resolve import resolve_names

NOWHERE = Span(Source("", ""), 1, 1, 1, 1)
PRINTABLE = "".join(chr(code) for code in range(0x20, 0x7F))
VALUES = st.integers(0, 0x10FFFF)
ROLES = st.sampled_from([None, "C", "S"])
ALPHABET = st.sampled_from(
    [*string.printable, *"\u00e9\u2028\x00", "=/", "%x", "%d1", "rule = ", "\n    ", '"a"']
)


def names(extra: str) -> st.SearchStrategy[str]:
    return st.text(string.ascii_letters + string.digits + "-" + extra, max_size=6).map(
        lambda rest: f"n{rest}"
    )


def leaves(dialect: Dialect) -> st.SearchStrategy[Element]:
    tolerant = dialect == "zeromq"
    return st.one_of(
        st.builds(
            Reference, names("_" if tolerant else ""), ROLES if tolerant else st.none(), st.just(NOWHERE)
        ),
        st.builds(CharVal, st.text(PRINTABLE.replace('"', "")), st.booleans(), st.just(NOWHERE)),
        st.builds(NumVal, st.lists(VALUES, min_size=1, max_size=3).map(tuple), st.just(NOWHERE)),
        st.tuples(VALUES, VALUES).map(lambda ends: NumRange(min(ends), max(ends), NOWHERE)),
        st.builds(ProseVal, st.text(PRINTABLE.replace(">", "")), st.just(NOWHERE)),
    )


def branches(dialect: Dialect) -> Callable[[st.SearchStrategy[Element]], st.SearchStrategy[Element]]:
    def extend(inner: st.SearchStrategy[Element]) -> st.SearchStrategy[Element]:
        # The tolerant dialect reads `*[a]` as `*(a)`: such a tree is never written there.
        repeated = inner.filter(lambda element: dialect == "rfc5234" or not isinstance(element, Option))
        counts = st.tuples(st.integers(0, 300), st.none() | st.integers(0, 300))
        several = st.lists(inner, min_size=2, max_size=4).map(tuple)
        return st.one_of(
            st.builds(Alternation, several, st.just(NOWHERE)),
            st.builds(Concatenation, several, st.just(NOWHERE)),
            st.builds(Option, inner, st.just(NOWHERE)),
            st.tuples(counts, repeated).map(lambda drawn: repetition(*drawn[0], drawn[1])),
        )

    return extend


def repetition(least: int, more: int | None, element: Element) -> Repetition:
    return Repetition(least, None if more is None else least + more, element, NOWHERE)


def rulelists(dialect: Dialect) -> st.SearchStrategy[Rulelist]:
    elements = st.recursive(leaves(dialect), branches(dialect), max_leaves=12)
    text = st.text(PRINTABLE, max_size=20).map(str.strip)
    comments = st.lists(st.builds(Comment, text, st.just(NOWHERE)), max_size=3).map(tuple)
    rules = st.builds(
        Rule,
        name=names("_" if dialect == "zeromq" else ""),
        role=ROLES if dialect == "zeromq" else st.none(),
        definition=elements,
        incremental=st.booleans(),
        leading=comments,
        trailing=comments,
        span=st.just(NOWHERE),
        name_span=st.just(NOWHERE),
    )
    return st.lists(rules, min_size=1, max_size=5).map(lambda drawn: Rulelist(tuple(drawn)))


def read(text: str, dialect: Dialect) -> tuple[Rulelist, Diagnostics]:
    diagnostics = Diagnostics()
    return parse_grammar(Source("g", text), dialect=dialect, diagnostics=diagnostics), diagnostics


@given(rulelists("rfc5234"))
def test_written_and_read_again_is_the_same(rulelist: Rulelist) -> None:
    again, diagnostics = read(write_grammar(rulelist), "rfc5234")
    assert list(diagnostics) == []
    assert again == rulelist


@given(rulelists("zeromq"))
def test_written_and_read_again_is_the_same_with_roles(rulelist: Rulelist) -> None:
    again, diagnostics = read(write_grammar(rulelist), "zeromq")
    assert diagnostics.errors == ()
    assert again == rulelist


@given(rulelists("zeromq"))
def test_any_grammar_is_resolved_or_refused(rulelist: Rulelist) -> None:
    diagnostics = Diagnostics()
    grammar = resolve_names([rulelist], diagnostics=diagnostics, roots=())
    keys = [(rule.role, rule.name.lower().replace("_", "-")) for rule in grammar.rules]
    assert len(keys) == len(set(keys))


@given(st.lists(ALPHABET, max_size=60).map("".join), st.sampled_from(["rfc5234", "zeromq"]))
def test_any_text_is_read_or_refused_in_words(text: str, dialect: Dialect) -> None:
    rulelist, diagnostics = read(text, dialect)
    assert rulelist.rules or diagnostics.errors
    for found in diagnostics:
        assert found.render()
        line = found.span.source.line(found.span.line)
        assert 1 <= found.span.column <= len(line) + 1


@given(st.lists(ALPHABET, max_size=60).map("".join))
def test_what_the_standard_allows_the_dialect_reads_too(text: str) -> None:
    strict, diagnostics = read(text, "rfc5234")
    tolerant, more = read(text, "zeromq")
    if not diagnostics.errors:
        assert more.errors == ()
        assert [str(rule) for rule in tolerant.rules] == [str(rule) for rule in strict.rules]
