"""Escaping of peer text: it cannot control a terminal, forge a log line or reverse text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specwire.runtime.log.text import show, show_json, show_peer

HOSTILE = [
    *map(chr, range(0x20)),  # C0
    "\x7f",
    *map(chr, range(0x80, 0xA0)),  # C1: CSI is one of them
    *map(chr, range(0x202A, 0x202F)),  # bidirectional embeddings and overrides
    *map(chr, range(0x2066, 0x206A)),  # bidirectional isolates
    "\u2028",
    "\u2029",
    "\x85",
    "\ud800",
    "\udc9b",  # an octet that is not UTF-8, decoded with surrogateescape
]
ANY = st.text(st.characters(exclude_categories=()))


@pytest.mark.parametrize("character", HOSTILE)
def test_hostile_characters_are_escaped(character: str) -> None:
    assert show(f"a{character}b") == f"a{character.encode('unicode_escape').decode()}b"
    assert show_json(json.dumps({"a": character}, ensure_ascii=False)).isprintable()


def test_plain_text_and_markup_are_unchanged() -> None:
    """Pages escape markup themselves, and terminals have none."""
    for text in ("", "plain", "é 😀", "<script>", "[bold]"):
        assert show(text) == show_json(text) == text


@given(ANY)
def test_the_result_is_one_printable_line(text: str) -> None:
    shown = show(text)
    assert shown.isprintable() and len(shown.splitlines()) <= 1
    shown.encode()  # raises at a surrogate


@given(ANY)
def test_only_kept_characters_are_not_escaped(text: str) -> None:
    assert show(text, keep="\n\t").replace("\n", "").replace("\t", "").isprintable()


@given(st.dictionaries(ANY, ANY | st.integers()), st.sampled_from([None, 2]))
def test_escaped_json_has_the_same_value(value: dict[str, object], indent: int | None) -> None:
    text = show_json(json.dumps(value, indent=indent, ensure_ascii=False))
    assert json.loads(text) == value
    assert text.replace("\n", "").isprintable()
    text.encode()


def test_long_routing_id_is_cut() -> None:
    """A client may name itself with 255 octets; what is shorter, and any endpoint, is told whole."""
    assert show_peer("ab" * 254 + "cd") == "abababababababab…abababcd (255 octets)"
    assert show_peer(b"specwire-peer-filemq-C-0042".hex()) == "specwire-peer-filemq-C-0042"
    assert (
        show_peer((b"a" * 30 + b"specwire-0042-bc").hex()) == "aaaaaaaaaaaaaaaa…specwire-0042-bc (46 octets)"
    )
    assert (
        show_peer(b"<b>with a blank</b>, which is no name".hex()) == "3c623e7769746820…6e616d65 (37 octets)"
    )
    assert show_peer("ab" * 20) == "ab" * 20
    assert show_peer("ipc://" + "a" * 60) == "ipc://" + "a" * 60
