"""Templates and YAML within bounds: what comes out, and where an error is said to be."""

from __future__ import annotations

from typing import Any

import pytest

from specwire.runtime.norfab.inventory.faults import InventoryError
from specwire.runtime.norfab.inventory.templates import render
from specwire.runtime.norfab.inventory.values import MAX_DEPTH, MAX_OCTETS, read_document

LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
)
MERGED_LAUGHS = "a0: &a0 {k0: x}\n" + "".join(
    f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}\n" for n in range(1, 12)
)


def value(text: str) -> Any:
    """Return what a document says."""
    return read_document(text, "f.yaml").value


def fault(text: str) -> str:
    """Return what is wrong with a document."""
    with pytest.raises(InventoryError) as caught:
        read_document(text, "f.yaml")
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", None),
        ("a: [1, 1.5, yes, ~, 'x']", {"a": [1, 1.5, True, None, "x"]}),
        ("1: a\ntrue: b\n~: c\n1.5: d", {"1": "a", "true": "b", "null": "c", "1.5": "d"}),
        (
            "on: 2001-12-14\nat: 2001-12-14 21:59:43Z",
            {"true": "2001-12-14", "at": "2001-12-14T21:59:43+00:00"},
        ),
        ("a: &x {k: 1}\nb: *x", {"a": {"k": 1}, "b": {"k": 1}}),
        ("a: &x {k: 1, l: 2}\nb: {l: 3, <<: *x}", {"a": {"k": 1, "l": 2}, "b": {"k": 1, "l": 3}}),
        ("a: &x {k: 1}\nb: &y {k: 2}\nc: {<<: [*x, *y]}", {"a": {"k": 1}, "b": {"k": 2}, "c": {"k": 1}}),
        ("k: 18446744073709551615", {"k": 2**64 - 1}),
    ],
)
def test_values_are_those_of_json(text: str, wanted: Any) -> None:
    """YAML 1.1, as deployed inventories are written."""
    assert value(text) == wanted


def test_aliases_are_values_of_their_own() -> None:
    """A change in one place is none in another."""
    told = value("a: &x [1]\nb: *x")
    told["a"].append(2)
    assert told["b"] == [1]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a: 1\nb: [2\nc: 3", "f.yaml:3:"),
        ("a: 1\n\ta: 2", "f.yaml:2:1"),
        ("a: 1\nb: 2\na: 3", "f.yaml:3:1: the key 'a' stands in this mapping already"),
        ("1: a\n'1': b", "f.yaml:2:1: the key '1'"),
        ("a: *b", "f.yaml:1:4: "),
        ("a: &a [*a]", "f.yaml:1:4: an alias leads"),
        ("a: &a {b: 1, <<: *a}", "f.yaml:1:4: an alias leads"),
        ("a: {<<: [1]}", "f.yaml:1:10: '<<' takes"),
        ("a:\n  - !!python/object/apply:os.system [id]", "f.yaml:2:5: the tag"),
        ("a: !!python/name:os.system ''", "f.yaml:1:4: "),
        ("a: !!set {b}", "f.yaml:1:4: the tag"),
        ("a: !!binary aGk=", "f.yaml:1:4: the tag"),
        ("a: .inf", "f.yaml:1:4: "),
        ("a: 18446744073709551616", "f.yaml:1:4: an integer has up to 64 bits"),
        ("a: " + "9" * 5000, "f.yaml:1:4: "),
        ("a: 2001-13-45", "f.yaml:1:4: '2001-13-45' cannot be read as timestamp"),
        ("a: !!float", "f.yaml:1:4: '' cannot be read as float"),
        ("a: !!int x", "f.yaml:1:4: 'x' cannot be read as int"),
        ("a: !!bool x", "f.yaml:1:4: 'x' cannot be read as bool"),
        ("a: !!timestamp x", "f.yaml:1:4: 'x' cannot be read as timestamp"),
        ("? [a]\n: b", "f.yaml:1:3: a key is text"),
        ("a: 1\nb: x\x07", "f.yaml:2:5: "),
        ("a: 1\n---\nb: 2", "f.yaml:2:1: a second document"),
        ("[" * (MAX_DEPTH + 1), f"f.yaml:1:{MAX_DEPTH + 1}: "),
        ("[" * 200_000, f"f.yaml:1:{MAX_DEPTH + 1}: "),
        ("a" * (MAX_OCTETS + 1), "f.yaml:1:1: is larger"),
        (LAUGHS, "more than 200000 values"),
        (MERGED_LAUGHS, "more than 200000 values"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text: str, wanted: str) -> None:
    """And it takes neither the memory nor the time that it asks for."""
    assert wanted in fault(text)


def test_a_place_in_what_a_template_gave_says_so() -> None:
    """Its lines are not those of the file."""
    with pytest.raises(InventoryError, match=r"^f\.yaml:2:1 of the rendered text: "):
        read_document("a: [\n", "f.yaml", rendered=True)


def test_a_template_knows_the_environment() -> None:
    """As in deployed inventories."""
    text = "a: {{ env.TOKEN }}\nb: {{ env.NONE | default('x') }}\n{% for n in range(2) %}c{{ n }}: 1\n{% endfor %}"
    assert render(text, "f.yaml", {"TOKEN": "t"}) == "a: t\nb: x\nc0: 1\nc1: 1\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("\n{{ nothing }}", 2),
        ("\n\n{% for %}", 3),
        ("{{ 1 / 0 }}", 1),
        ("{{ ().__class__.__base__.__subclasses__() }}", 1),
        ("{{ env.__init__.__globals__ }}", 1),
        ("{% set x = env.update({'A': 'b'}) %}", 1),
        ("{% include '/etc/passwd' %}", 1),
        ("\n{% set s = 'x' * 100000000 %}", 2),
        ("{{ 10 ** 100000000 }}", 1),
        ("{{ range(1000000000) | list }}", 1),
        ("{{ 'x'.ljust(1000000000) }}", 1),
        ("{{ 'x' | center(1000000000) }}", 1),
        ("{{ '{:1000000000}'.format(1) }}", 1),
        ("{{ '%1000000000d' % 1 }}", 1),
        ("{{ '%1000000000d' | format(1) }}", 1),
        ("{% for a in range(99999) %}{% for b in range(99999) %}ab{% endfor %}{% endfor %}", 1),
    ],
)
def test_a_template_stays_in_its_sandbox(text: str, line: int) -> None:
    """Nothing of Python, no files, nothing huge; the error has the line."""
    with pytest.raises(InventoryError) as caught:
        render(text, "f.yaml", {"A": "a"})
    assert (caught.value.place.file, caught.value.place.line) == ("f.yaml", line)
