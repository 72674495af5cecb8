"""Published rules, mended and added to: where each stands, and which of them count."""

from __future__ import annotations

from pathlib import Path

import pytest

from specwire.generator.abnf.sources import read_rules
from specwire.generator.abnf.syntax import Reference, Repetition, Rule
from specwire.generator.diagnostics import Diagnostics, Source, SpecError
from specwire.generator.profile.reader import load_profile
from specwire.generator.profile.tables import LoadedProfile, Profile
from specwire.generator.profile.toml_places import find_places
from tests.generator.compiling import write


def rules_of(folder: Path) -> dict[str, Rule]:
    diagnostics = Diagnostics()
    loaded = load_profile(folder, diagnostics, shown=folder.name)
    rulelists = read_rules(loaded, diagnostics, shown=folder.name)
    diagnostics.raise_errors()
    assert not list(diagnostics)
    return {str(rule): rule for rulelist in rulelists for rule in rulelist.rules}


ADDED = [
    ('"""', "\na = OCTET\n\nb = a   ; said\n    ; of b\n", 6, 8),
    ("'''", "\na = OCTET\n\nb = a   ; said\n    ; of b\n", 6, 8),
    ('"""', "\\\n   a = OCTET\n\n   b = a \\\n\n     a  ; said \\\n of b\n", 6, 8),
    ('"""', 'a = OCTET\nb = \\"x\\" a   ; said\n\n', 5, 6),
    ('"""', "\r\na = OCTET\r\n\r\nb = a   ; said\r\n", 6, 8),
]


@pytest.mark.parametrize(("quotes", "text", "a", "b"), ADDED)
def test_added_rules_stand_where_the_profile_has_them(
    tmp_path: Path, quotes: str, text: str, a: int, b: int
) -> None:
    profile = f'name = "demo"\n\n[[rules]]\nwhy = "?"\ntext = {quotes}{text}{quotes}\n'
    folder = write(tmp_path, "z = a b\n")
    (folder / "profile.toml").write_bytes(profile.encode())
    rules = rules_of(folder)
    assert [rules[name].name_span.line for name in "ab"] == [a, b]
    assert rules["a"].name_span.source.path == "demo/profile.toml"
    assert rules["b"].trailing[0].text.startswith("said")
    assert [rules[name].published_line for name in "zab"] == [1, 0, 0]


def test_an_erratum_mends_what_could_not_be_read(tmp_path: Path) -> None:
    grammar = "a = ( OCTET   ; one\n      b        ; two\nb = OCTET\na = ( OCTET b\n"
    profile = "name = 'demo'\nerrata = [{ rule = 'A', was = '( OCTET b', now = '3b', why = '?' }]\n"
    rules = rules_of(write(tmp_path, grammar, profile))
    definition = rules["a"].definition
    assert isinstance(definition, Repetition) and isinstance(definition.element, Reference)
    assert definition.minimum == 3
    assert str(definition.span).startswith("demo/profile.toml:2:")
    assert [comment.text for comment in rules["a"].leading + rules["a"].trailing] == []


def test_the_comments_of_a_mended_rule_are_kept(tmp_path: Path) -> None:
    grammar = "; above\na = b | b   ; one\n    / b      ; two\nb = OCTET\n"
    profile = "name = 'demo'\n[[errata]]\nrule = 'a'\nwas = 'b | b / b'\nnow = '''\nb\n/ b'''\nwhy = '?'\n"
    rule = rules_of(write(tmp_path, grammar, profile))["a"]
    assert [comment.text for comment in rule.leading] == ["above"]
    assert [comment.text for comment in rule.trailing] == ["one", "two"]
    assert str(rule.definition.span) == "demo/profile.toml:6:2"


def test_a_dialog_is_mended_with_its_roles(tmp_path: Path) -> None:
    profile = "name = 'demo'\n[[errata]]\nrule = 'd'\nwas = 'A / B'\nnow = 'C:A / S:B'\nwhy = '?'\n"
    rules = rules_of(write(tmp_path, "d = A / B\nA = %x01\nB = %x02\n", profile))
    assert str(rules["d"].definition.span) == "demo/profile.toml:5:8"


def test_own_rules_replace_those_of_the_base_and_its_base(tmp_path: Path) -> None:
    write(tmp_path, "a = OCTET\nb = OCTET\nc = OCTET\n", 'name = "first"\n[timers]\nx = 1.0\n', "first")
    middle = "name = 'second'\nbase = 'first'\n[[rules]]\nwhy = '?'\ntext = '''\nb = 2OCTET\n'''\n"
    write(tmp_path, "", middle, "second")
    (tmp_path / "second" / "grammar.abnf").unlink()
    profile = "name = 'other_name'\nbase = 'second'\n[timers]\ny = 2.0\n"
    folder = write(tmp_path, "c = 3OCTET\n", profile, "third")
    rules = rules_of(folder)
    assert {name: rule.name_span.source.path for name, rule in rules.items()} == {
        "a": "first/grammar.abnf", "b": "second/profile.toml", "c": "third/grammar.abnf",
    }  # fmt: skip
    loaded = load_profile(folder, Diagnostics(), shown="x/third")
    assert loaded.profile.timers == {"x": 1.0, "y": 2.0}
    assert str(loaded.place("timers", "x")) == "x/first/profile.toml:3:1"
    assert str(loaded.place("timers", "y")) == "x/third/profile.toml:4:1"


def test_an_empty_key_replaces_that_of_the_base(tmp_path: Path) -> None:
    dialog = "[[dialogs]]\nname = 'd'\nrule = 'd'\nroles = ['C', 'S']\n"
    write(
        tmp_path, "a = OCTET\n", f"name = 'first'\nsingle_frame = true\nmessages = ['a']\n{dialog}", "first"
    )
    profile = "name = 'second'\nbase = 'first'\nsingle_frame = false\ndialogs = []\n"
    loaded = load_profile(write(tmp_path, "", profile, "second"), Diagnostics(), shown="second")
    assert (loaded.profile.dialogs, loaded.profile.single_frame) == ((), False)
    assert loaded.profile.messages == ("a",)


PROFILE = """\
# name = "not this"
"name" = "demo"
messages = [ "a", # "b"
  'c' ]
[types."NOM.sequence"]
doc = '''
[types.x]
unit = "no" ''''
unit = "octets"
[[errata]]
rule.x = 1
[[errata]]
rule = "two"
inner = { a = [1, {b = 2}], "c d" = "\\u0041" }
[errata.more]
x = 1979-05-27 07:32:00
"""


@pytest.mark.parametrize(
    ("path", "place"),
    [
        (("name",), "2:1"),
        (("messages", 0), "3:14"),
        (("messages", 1), "4:3"),
        (("types", "NOM.sequence"), "5:2"),
        (("types", "NOM.sequence", "unit"), "9:1"),
        (("types", "NOM.sequence", "default"), "5:2"),
        (("types", "x"), "1:1"),
        (("errata", 0, "rule", "x"), "11:1"),
        (("errata", 1), "12:3"),
        (("errata", 1, "rule"), "13:1"),
        (("errata", 1, "inner", "a", 1, "b"), "14:20"),
        (("errata", 1, "inner", "c d"), "14:29"),
        (("errata", 1, "more", "x"), "16:1"),
    ],
)
def test_places_in_a_profile(path: tuple[str | int, ...], place: str) -> None:
    loaded = LoadedProfile(Profile("demo"), Source("p", PROFILE))
    assert str(loaded.place(*path)) == f"p:{place}"


@pytest.mark.parametrize(
    "text", ["", "[", "a", "a =", "a = [1,", "a = {", 'a = "', "= 1", "[[a]]]\nb", "a = '''"]
)
def test_looking_for_places_ends_whatever_the_text(text: str) -> None:
    find_places(text)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no /dev/zero")
def test_a_profile_without_end_is_read_up_to_a_bound(tmp_path: Path) -> None:
    (tmp_path / "profile.toml").symlink_to("/dev/zero")
    with pytest.raises(SpecError, match="the profile has more than 200,000 characters"):
        load_profile(tmp_path, Diagnostics(), shown="x")


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no /dev/zero")
def test_a_grammar_without_end_is_read_up_to_a_bound(tmp_path: Path) -> None:
    (tmp_path / "grammar.abnf").symlink_to("/dev/zero")
    with pytest.raises(SpecError, match="too many characters; at most 2,000,000 are allowed"):
        rules_of(tmp_path)


@pytest.mark.parametrize(("characters", "fits"), [(200_000, True), (200_001, False)])
def test_a_profile_has_so_many_characters_at_most(tmp_path: Path, characters: int, fits: bool) -> None:
    """Characters, not octets: each of these has three."""
    (tmp_path / "profile.toml").write_text("#".ljust(characters, "€"), encoding="utf-8")
    diagnostics = Diagnostics()
    if fits:
        load_profile(tmp_path, diagnostics, shown="x")
    else:
        with pytest.raises(SpecError, match="E501"):
            load_profile(tmp_path, diagnostics, shown="x")
