"""Names to definitions: what is merged, what a reference means, what is reported."""

from __future__ import annotations

from specwire.generator.abnf.dialect import Dialect
from specwire.generator.abnf.parser import parse_grammar
from specwire.generator.abnf.syntax import Reference, Rule, write_element
from specwire.generator.diagnostics import Diagnostics, Source, Span
from specwire.generator.passes.grammar import Grammar, references
from specwire.generator.passes.resolve import resolve_names

NOWHERE = Span(Source("elsewhere", ""), 1, 1, 1, 1)


def resolve(
    *texts: str,
    dialect: Dialect = "zeromq",
    primitives: tuple[str, ...] = (),
    roots: tuple[str, ...] | None = None,
) -> tuple[Grammar, list[tuple[str, str]]]:
    """Return the grammar and what resolving found: code and text under the caret."""
    syntax = Diagnostics()
    rulelists = [
        parse_grammar(Source(f"text{number}.abnf", text), dialect=dialect, diagnostics=syntax)
        for number, text in enumerate(texts, start=1)
    ]
    syntax.raise_errors()
    found = Diagnostics()
    grammar = resolve_names(rulelists, diagnostics=found, dialect=dialect, primitives=primitives, roots=roots)
    return grammar, [(d.code, under_caret(d.span)) for d in found]


def under_caret(span: Span) -> str:
    return span.source.line(span.line)[span.column - 1 : span.end_column - 1]


def ref(name: str, role: str | None = None) -> Reference:
    return Reference(name, role, NOWHERE)


def only_reference(rule: Rule | None) -> Reference:
    assert rule
    (reference,) = references(rule.definition)
    return reference


def test_repeated_rules_are_one_with_the_comments_of_every_place() -> None:
    text = "; one\nsize = OCTET ; first\nnext = %x01\n; two\nSIZE = octet ; second\n"
    grammar, found = resolve(text)
    assert [str(rule) for rule in grammar.rules] == ["size", "next"]
    rule = grammar.rules[0]
    assert [comment.text for comment in (*rule.leading, *rule.trailing)] == ["one", "two", "first", "second"]
    assert rule.name_span.line == 2
    assert ("W201", "SIZE") in found


def test_another_right_hand_side_is_an_error_that_names_the_first() -> None:
    _, found = resolve("a = %x01\na = %x02\na = %x03\n")
    assert found == [("E202", "a"), ("E202", "a")]


def test_repetition_in_another_text_names_the_file() -> None:
    rulelists = [
        parse_grammar(Source(path, "a = %x01\n"), dialect="zeromq", diagnostics=Diagnostics())
        for path in ("grammar.abnf", "profile.toml")
    ]
    diagnostics = Diagnostics()
    resolve_names(rulelists, diagnostics=diagnostics)
    (found,) = diagnostics
    assert str(found.span) == "profile.toml:1:1"
    assert found.help == "it is also defined at grammar.abnf:1:1; both are read as one rule"


def test_incremental_alternatives_are_joined() -> None:
    grammar, found = resolve("a = %x01 / %x02\na =/ %x03\nb = a\na =/ (%x04 / %x05) %x06\n")
    assert found == []
    assert write_element(grammar.rules[0].definition) == "%x01 / %x02 / %x03 / ( %x04 / %x05 ) %x06"
    assert not grammar.rules[0].incremental


def test_incremental_without_a_rule_is_an_error() -> None:
    assert resolve("a =/ %x02\na = %x01\n")[1] == [("E204", "a")]


def test_roles_and_bare_names_are_distinct() -> None:
    grammar, found = resolve(
        "C:request = request\nrequest = %x01\nS:bye = %x02\ndialog = C:request S:bye C:bye\n"
    )
    assert found == []  # 'C:bye' means nothing, which costs the dialog only: see test_dialog.py
    assert str(grammar.find(ref("request", "C"))) == "C:request"
    assert str(grammar.find(ref("request", "S"))) == "request"
    assert str(grammar.find(ref("request"))) == "request"
    assert grammar.find(ref("bye")) is None
    assert str(grammar.rule("bye", "S")) == "S:bye"
    assert grammar.rule("request", "S") is None


def test_names_are_compared_without_case_and_with_hyphen_for_underscore() -> None:
    grammar, found = resolve("top = ping-ok Ping\nping_ok = %x01\nping = %x02\n")
    assert found == [("W202", "ping-ok"), ("W204", "Ping")]
    assert str(grammar.find(ref("PING-OK"))) == "ping_ok"


def test_case_is_no_news_in_the_standard() -> None:
    assert resolve("top = Ping octet\nping = %x02\n", dialect="rfc5234")[1] == []


def test_external_types() -> None:
    grammar, found = resolve("top = FRAME frame msg JSON\n")
    assert found == [("W206", "FRAME"), ("W206", "msg"), ("W206", "JSON")]
    assert [grammar.external(use) for use in references(grammar.rules[0].definition)] == [
        "frame",
        "frame",
        "messages",
        "json",
    ]
    assert grammar.external(ref("other")) is None


def test_the_standard_has_no_external_types() -> None:
    assert resolve("top = FRAME\n", dialect="rfc5234")[1] == [("E201", "FRAME")]


def test_a_rule_of_the_name_is_no_external_type() -> None:
    grammar, found = resolve("top = msg\nmsg = *frame\nframe = *OCTET\n")
    assert found == []
    assert grammar.external(ref("msg")) is None


def test_a_rule_that_names_itself_is_an_external_type() -> None:
    grammar, found = resolve("payload = json\njson = JSON ; encoded\n")
    assert found == [("W206", "JSON")]
    rule = grammar.find(ref("json"))
    assert rule is grammar.rule("json")
    assert grammar.find(only_reference(rule)) is None
    assert grammar.external(only_reference(rule)) == "json"


def test_a_declaration_gives_way_to_the_rule() -> None:
    grammar, found = resolve("top = chunk\nchunk = chunk ; data\nchunk = 4OCTET *OCTET ; counted\n")
    assert found == [("W207", "chunk")]
    rule = grammar.rule("chunk")
    assert rule and write_element(rule.definition) == "4OCTET *OCTET"
    assert [comment.text for comment in rule.trailing] == ["data", "counted"]


def test_a_declaration_of_nothing_known_is_undefined() -> None:
    assert resolve("top = chunk\nchunk = chunk\n")[1] == [("E201", "chunk")]
    assert resolve("top = chunk\nchunk = chunk\n", primitives=("chunk",))[1] == []


def test_undefined_names_are_reported_once_and_all() -> None:
    _, found = resolve("top = status other STATUS\nnext = status\n")
    assert found == [("E201", "status"), ("E201", "other")]


def test_primitives_of_the_profile_need_no_rule() -> None:
    grammar, found = resolve(
        "top = status_code C:status FRAME\n", primitives=("status-code", "STATUS", "frame")
    )
    assert found == []
    assert grammar.find(ref("status-code")) is None


def test_core_rules_give_way_to_the_grammar() -> None:
    grammar, found = resolve("top = OCTET octet VCHAR\nVCHAR = %x20-7E\n")
    assert found == [("W205", "octet")]
    assert grammar.core(ref("octet")) == grammar.core(ref("OCTET"))
    assert grammar.core(ref("OCTET")) is not None
    assert grammar.core(ref("VCHAR")) is None
    assert grammar.find(ref("OCTET")) is None


def test_unused_rules_are_reported_when_roots_are_known() -> None:
    text = "dialog = C:hello\nhello = %x01\nflag-a = %x01\nlonely = lonely-part\nlonely-part = *( OCTET lonely-part )\n"
    assert resolve(text)[1] == []
    assert resolve(text, roots=("dialog", "flag_a"))[1] == [("W203", "lonely")]
    assert resolve(text, roots=("DIALOG", "flag-a", "lonely"))[1] == []
