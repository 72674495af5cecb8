"""Rules that describe text: what matches, how far a text gets, what is refused, and what it costs."""

from __future__ import annotations

import pytest

from specwire.generator.abnf.parser import parse_grammar
from specwire.generator.abnf.syntax import Reference, Rulelist
from specwire.generator.abnf.text_automaton import Walk
from specwire.generator.abnf.text_rules import MAX_FAULTS, TextRule, compile_text_rule
from specwire.generator.diagnostics import Diagnostics, Source, Span, SpecError
from specwire.generator.passes.resolve import resolve_names

NOWHERE = Span(Source("elsewhere", ""), 1, 1, 1, 1)


def compile_rule(grammar: str | Rulelist, name: str = "r") -> tuple[TextRule | None, Diagnostics]:
    """Return the matcher of a rule, and what compiling it reported; `grammar` itself is sound."""
    syntax, found = Diagnostics(), Diagnostics()
    rules = (
        parse_grammar(Source("g.abnf", grammar), dialect="zeromq", diagnostics=syntax)
        if isinstance(grammar, str)
        else grammar
    )
    syntax.raise_errors()
    resolved = resolve_names([rules], diagnostics=Diagnostics())
    return compile_text_rule(resolved, Reference(name, None, NOWHERE), found), found


def rule_of(grammar: str | Rulelist, name: str = "r") -> TextRule:
    """Return the matcher of a rule that has no fault."""
    rule, found = compile_rule(grammar, name)
    assert rule is not None, [error.render() for error in found]
    return rule


STATUS = """\
status  = version SP 3DIGIT SP reason CRLF
version = "HTTP/" 1*DIGIT "." 1*DIGIT
reason  = *( VCHAR / SP )
"""


@pytest.mark.parametrize(
    ("definition", "matching", "refused"),
    [
        ('"get"', ["get", "GET", "gEt"], ["ge", "gets", "", "got"]),
        ('%s"get"', ["get"], ["GET", "Get"]),
        ('%i"get"', ["GET"], ["GOT"]),
        ('"k"', ["k", "K"], ["\u212a"]),
        ("%x47.45", ["GE"], ["ge", "G"]),
        ("%x61-7A", ["a", "z"], ["A", "{", "ab"]),
        ("%x0-10FFFF", ["\x00", "\U0010ffff", "é"], ["", "ab"]),
        ('"a" / "ab" / "abc"', ["a", "ab", "abc"], ["", "abcd", "b"]),
        ('("a" / "ab") ("c" / "bcd")', ["ac", "abc", "abcd", "abbcd"], ["a", "abb"]),
        ('[ "a" ] *"b" ""', ["", "a", "b", "abbb"], ["aa", "ba"]),
        ("2*3DIGIT", ["12", "123"], ["1", "1234"]),
        ("0DIGIT", [""], ["1"]),
        ("0<pchar>", [""], ["p"]),
        ("*0DIGIT", [""], ["1"]),
        ('2*3( 2"a" )', ["aaaa", "aaaaaa"], ["aa", "aaa", "aaaaa", "aaaaaaaa"]),
        ('2*3( 4*5"a" )', ["a" * n for n in (8, 9, 10, 12, 15)], ["a" * n for n in (7, 11, 16)]),
        ('2( *2"a" )', ["", "a", "aaaa"], ["aaaaa"]),
        ('2*( "ab" )', ["abab", "ababab"], ["ab", "", "aba"]),
        ('*2( "ab" )', ["", "ab", "abab"], ["ababab", "a"]),
        ('1*2( *"a" "b" / [ "c" ] )', ["", "c", "cc", "ab", "abc", "bb"], ["ccc", "a", "bbb"]),
        ('*( *2"a" "b" / "a" "c" )', ["", "ab", "aab", "acb", "bac"], ["aaab", "a", "aac"]),
        ('3*5"a" *2"a" "a"', ["a" * 4, "a" * 8], ["a" * 3, "a" * 9]),
    ],
)
def test_verdicts(definition: str, matching: list[str], refused: list[str]) -> None:
    rule = rule_of(f"r = {definition}\n")
    assert [text for text in matching if not rule.match(text).matches] == []
    assert [text for text in refused if rule.match(text).matches] == []


@pytest.mark.parametrize(
    ("text", "offset", "expected", "may_end"),
    [
        ("HTTP/1.1 200 OK\r\n", 17, (), True),
        ("HTTP/1.1 200 OK\n", 15, ("VCHAR", "SP", "CR"), False),
        ("http/1.1 20x", 11, ("DIGIT",), False),
        ("http/1.1 2000", 12, ("SP",), False),
        ("http/1.", 7, ("DIGIT",), False),
        ("http/1 ", 6, ("DIGIT", '"."'), False),
        ("hxtp", 1, ('"TTP/"',), False),
        ("", 0, ('"HTTP/"',), False),
        ("HTTP/1.1 200 \r\n more", 15, (), True),
    ],
)
def test_how_far_a_text_gets(text: str, offset: int, expected: tuple[str, ...], may_end: bool) -> None:
    found = rule_of(STATUS, "status").match(text)
    assert (found.offset, found.expected, found.may_end) == (offset, expected, may_end)
    assert found.matches == (may_end and offset == len(text))


def test_what_is_expected_is_written_as_the_grammar_writes_it() -> None:
    grammar = (
        'r = %s"ab" / %x0D.0A / %x80-FF / colon / many / bit\ncolon = ":"\nmany = "x" / "y"\nbit = BIT\n'
    )
    assert rule_of(grammar).match("").expected == ('%s"ab"', "%x0D.0A", "%x80-FF", '":"', "many", "bit")
    assert rule_of(f'r = "{"a" * 50}"\n').match("").expected == (f'"{"a" * 40}…"',)


def test_core_rules_and_names_in_any_case() -> None:
    assert rule_of('r = "x"\n', "digit").match("7").matches
    assert rule_of("r = Alpha a_b\na-b = DIGIT\n").match("x7").matches
    assert rule_of('r = DIGIT\nDIGIT = "x"\n').match("x").matches, "the grammar's own rule goes first"


@pytest.mark.parametrize(
    ("grammar", "found"),
    [
        (
            'r = a b\na = a / "x"\nb = <see RFC 1> / B',
            ["3:5 E602 no text can be matched against the prose value <see RFC 1>"],
        ),
        (
            'r = "a" x\nx = [ y ] z\ny = 2x\nz = y "z"',
            ["1:1 E605 no text matches rule 'r': every alternative leads back to a rule that never ends"],
        ),
        ('r = FRAME / "a"', ["1:5 E603 'FRAME' is read as one ZeroMQ frame, which no rule describes"]),
        ("r = json\njson = JSON", ["2:8 E603 'JSON' is read as JSON text, which no rule describes"]),
        ("r = topc topc\ntopic = DIGIT", ["1:5 E201 rule 'topc' is not defined"]),
        ('r = 999999999( "ab" )', ["1:1 E604 rule 'r' expands to more than 50000 runs of characters"]),
        (
            "\n".join(f'r{n} = r{n + 1} "{"a" * 90_000}"' for n in range(4)) + '\nr4 = "x"\nr = r0',
            ["6:1 E604 rule 'r' expands to more than 300000 elements"],
        ),
    ],
)
def test_rules_that_describe_no_text(grammar: str, found: list[str]) -> None:
    rule, diagnostics = compile_rule(grammar + "\n")
    assert rule is None
    told = [f"{d.span.line}:{d.span.column} {d.code} {d.message}" for d in diagnostics]
    assert sorted(told) == sorted(found)


def test_faults_elsewhere_in_the_grammar_do_not_matter() -> None:
    assert rule_of("r = DIGIT\nx = x <prose> FRAME nothing\n").match("1").matches


def test_advice_names_the_rule_that_was_meant() -> None:
    (error,) = compile_rule("r = topc\ntopic = DIGIT\n")[1]
    assert error.help == "did you mean 'topic'? Otherwise define it"


DEEP = 3_000
HOSTILE = {
    "a class for each rule": "\n".join(f"r{n} = %x{2 * n:X} / r{n + 1}" for n in range(1500))
    + '\nr1500 = "x"\n',
    "a long cycle": "\n".join(f'r{n} = "a" r{n + 1}' for n in range(DEEP)) + f"\nr{DEEP} = r0\n",
    "many cycles": "\n".join(f"r{n} = r{n + 1} / r{n // 2}" for n in range(DEEP)) + f"\nr{DEEP} = r0\n",
    "many unknown names": "r0 = " + " ".join(f"u{n}" for n in range(100)) + "\n",
    "counts in counts": 'r0 = 99999999( 999999( "ab" ) )\n',
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_grammars_are_refused(kind: str) -> None:
    rule, found = compile_rule(HOSTILE[kind], "r0")
    assert rule is None
    assert 1 <= len(found.errors) <= MAX_FAULTS
    assert max(len(error.message) for error in found.errors) < 200


RECURSIVE = {
    "nested": ('r = "(" [ r ] ")" / r r / "x"', ["x", "()", "(((x)))", "()()(x)"], [("(", 1), ("(x))", 3), ("", 0)]),
    "left": ('r = r "," item / item\nitem = 1*3DIGIT', ["1", "1,22,333"], [("1,", 2), ("1,2222", 5), (",", 0)]),
    "right": ('r = "a" [ r ]', ["a", "aaaaaa"], [("", 0), ("aab", 2)]),
    "palindrome": ('r = "a" r "a" / "b" r "b" / [ "c" ]', ["", "abba", "abcba"], [("ab", 2), ("abcb", 4), ("abccba", 3)]),
    "hidden left": ('r = [ "x" ] r "y" / "z"', ["z", "xzy", "zyy", "xxzyyy"], [("x", 1), ("xxz", 3), ("zx", 1)]),
    "mutual": ('r = x / "k" r\nx = "y" x / "z" / [ x ] "q"', ["z", "kkyzq", "qq"], [("ky", 2), ("kk", 2), ("zz", 1)]),
    "never ending ways": ('r = "a" r / "b" / "a" x\nx = "c" x', ["b", "aab"], [("ac", 1), ("a", 1)]),
    "empty": ('r = [ r ] [ r ] "x" / ""', ["", "x", "xxxx"], [("y", 0)]),
    "counted": ('r = 2*3( "a" / "(" r ")" ) "."', ["aa.", "aaa.", "a(aa.)."], [("a.", 1), ("aaaa", 3), ("a(a.", 3)]),
}  # fmt: skip
"""A grammar, texts that its rule `r` describes by hand, and others with the place where each stops being one."""


@pytest.mark.parametrize("kind", RECURSIVE)
def test_rules_that_contain_themselves(kind: str) -> None:
    grammar, matching, refused = RECURSIVE[kind]
    rule = rule_of(grammar + "\n")
    assert rule.recursive
    assert [text for text in matching if not rule.match(text).matches] == []
    assert [(text, rule.match(text).offset) for text, _ in refused] == refused
    assert [text for text, _ in refused if rule.match(text).matches] == []


def test_recursion_says_what_was_expected() -> None:
    rule = rule_of('r = "(" [ r ] ")" / DIGIT\n')
    assert rule.match("((").expected == ('"("', "DIGIT", '")"')
    assert rule.match("(()").expected == ('")"',)
    assert rule.match("()").may_end and not rule.match("(").may_end


def test_recursion_goes_as_deep_as_the_text() -> None:
    rule = rule_of('r = "(" [ r ] ")"\n')
    assert rule.match("(" * 20_000 + ")" * 20_000).matches
    assert rule.match("(" * 20_000 + ")" * 20_001).offset == 40_000


def test_a_text_with_too_many_readings_is_an_error() -> None:
    rule = rule_of('r = r r r / [ r ] "x"\n')
    assert rule.match("x" * 20).matches
    with pytest.raises(SpecError) as raised:
        rule.match("x" * 5_000)
    assert [(error.code, error.span.line) for error in raised.value.diagnostics] == [("E601", 1)]


def test_rules_too_large_to_be_copied_are_called_by_name() -> None:
    doubling = "\n".join(f"r{n} = r{n + 1} r{n + 1}" for n in range(12)) + '\nr12 = 9( "x" / "yz" )\n'
    rule = rule_of(doubling, "r0")
    size = 9 * 2**12
    assert rule.match("x" * size).matches and rule.match("yz" * size).matches
    assert rule.match("x" * (size - 1)).offset == size - 1
    assert not rule.match("x" * (size + 1)).matches


def test_long_chains_of_rules_need_no_recursion() -> None:
    grammar = "\n".join(f'r{n} = "a" [ r{n + 1} ]' for n in range(DEEP)) + f'\nr{DEEP} = "b"\n'
    rule = rule_of(grammar, "r0")
    assert rule.match("a" * DEEP + "b").matches
    assert rule.match("a" * (DEEP + 1)).offset == DEEP


@pytest.mark.parametrize(
    ("definition", "longest"),
    [("999999999OCTET", None), ("*( 99999*999999999OCTET )", None), ("7( 9999999[ OCTET ] )", 0)],
)
def test_huge_counts_of_a_class_are_counted(definition: str, longest: int | None) -> None:
    rule = rule_of(f"r = {definition}\n")
    assert len(rule.automaton.edges) == 1
    assert rule.match("x" * 1000).offset == 1000
    assert rule.match("x" * 1000).matches == (longest is not None)


def test_a_counted_run_ends_at_its_bounds() -> None:
    rule = rule_of("r = 1000*2000ALPHA DIGIT\n")
    counts = [999, 1000, 2000, 2001]
    assert [rule.match("a" * n + "1").matches for n in counts] == [False, True, True, False]
    assert rule.match("a" * 3000).offset == 2000
    assert rule.match("a" * 999 + "1").expected == ("ALPHA",)
    assert rule.match("a" * 2000).expected == ("DIGIT",)


@pytest.mark.parametrize(
    "definition",
    [
        '*( *( *"a" ) ) "b"',
        '*( "a" / "aa" / 1*"a" ) "b"',
        '40[ "a" ] 40"a" "b"',
        '*( *50"a" / "a" "c" / 3*9"a" ) "b"',
        '*"a" *"a" *"a" *"a" *"a" *"a" *"a" *"a" "b"',
    ],
)
def test_the_work_grows_with_the_text_alone(definition: str) -> None:
    """Expressions on which backtracking takes time exponential in the text: here each character costs the same."""
    rule = rule_of(f"r = {definition}\n")
    short, long = (steps(rule, "a" * length) for length in (1_000, 2_000))
    assert long <= 2 * short
    automaton = rule.automaton
    assert short <= 1_001 * 2 * (len(automaton.silent) + len(automaton.edges))


def steps(rule: TextRule, text: str) -> int:
    walk = Walk(rule.automaton)
    for character in text:
        walk.advance(character)
    return walk.steps
