"""Whatever stands in a file: values of JSON, or an error with a place; never anything else."""

from __future__ import annotations

import json

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from specwire.runtime.norfab.inventory.faults import InventoryError
from specwire.runtime.norfab.inventory.merging import merge
from specwire.runtime.norfab.inventory.templates import render
from specwire.runtime.norfab.inventory.values import read_document
from tests.examples import examples

_SIGNS = (
    "a: ",
    "b: ",
    "- ",
    "\n",
    "  ",
    "&x ",
    "*x",
    "<<: ",
    "{",
    "}",
    "[",
    "]",
    ", ",
    "'",
    '"',
    "#",
    "=",
    "~",
)
_MARKS = (
    "|\n",
    ">-\n",
    "? ",
    ": ",
    "%YAML 1.2\n",
    "---\n",
    "...\n",
    "\t",
    "\0",
    "\x85",
    "\ud800",
    "\U0001f600",
)
_SCALARS = (
    "1",
    "0x1",
    "1_0",
    "190:20:30",
    "1e400",
    ".nan",
    "2001-1-1",
    "2001-13-1",
    "yes",
    "{{ a }}",
    "{% if %}",
)
_TAGS = (
    "!!",
    "!!set ",
    "!!float ",
    "!!int ",
    "!!bool ",
    "!!timestamp ",
    "!!null ",
    "!!str ",
    "!!binary ",
    "!x ",
)
PIECES = st.lists(st.sampled_from((*_SIGNS, *_MARKS, *_SCALARS, *_TAGS)), max_size=25).map("".join)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.text(st.characters(exclude_categories=["C"]), max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
LAYERS = st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3)


@given(PIECES | st.text(max_size=60))
@settings(max_examples=examples(60), deadline=None)
def test_a_document_is_read_or_refused_with_a_place(text: str) -> None:
    """And what is read can be sent as JSON."""
    try:
        document = read_document(text, "f.yaml")
    except InventoryError as error:
        assert error.place.file == "f.yaml" and error.place.line >= 1 and error.place.column >= 1
        assert error.reason
    else:
        msgspec.json.decode(msgspec.json.encode(document.value))


@given(st.text(alphabet="{%}} abforin'\"|.[]()*+1-#\n", max_size=40) | PIECES)
@settings(max_examples=examples(60), deadline=None)
def test_a_template_is_rendered_or_refused_with_a_line(text: str) -> None:
    """Nothing else comes out of the sandbox."""
    try:
        render(text, "f.yaml", {"a": "b"})
    except InventoryError as error:
        assert 1 <= error.place.line <= text.count("\n") + 1


@given(VALUES)
@settings(max_examples=examples(40), deadline=None)
def test_json_is_yaml(value: object) -> None:
    """A layer that a program writes as JSON says the same."""
    assert read_document(json.dumps(value, ensure_ascii=False), "f.yaml").value == value


@given(LAYERS, LAYERS)
@settings(max_examples=examples(60), deadline=None)
def test_merging_changes_neither_layer_and_repeats_nothing(
    below: dict[str, object], above: dict[str, object]
) -> None:
    """Laid on twice, a layer gives what it gave once."""
    before = msgspec.json.encode([below, above])
    merged = merge(below, above)
    assert msgspec.json.encode([below, above]) == before
    assert merge(merged, above) == merged
    assert set(merged) == set(below) | set(above)
