"""Which messages are written in SQL, and how a peer's numbers are kept from being positions."""

from __future__ import annotations

import pytest

from specwire.generator.emit import sql
from specwire.generator.emit.sql_text import Lets
from specwire.generator.pipeline import compile_protocol
from tests.house.repository import ROOT

LEFT = {
    "filemq": ["Icanhaz", "Cheezburger"],  # options, cache and headers are dictionaries
    "libfilemq": ["Icanhaz", "Cheezburger"],
    "zre": ["Hello"],  # groups and headers
}
"""Messages that have a list."""


@pytest.mark.parametrize(
    "name", ["cmb1", "cmb1_json", "filemq", "flux", "libfilemq", "norfab", "norfab_ascii", "zre"]
)
def test_messages_without_lists_are_covered(name: str) -> None:
    protocol = compile_protocol(ROOT / "grammars" / name).protocol
    written = sql.emit(protocol)
    for message in protocol.messages:
        assert (f'"{message.class_name}": """' in written) == (message.class_name not in LEFT.get(name, []))
    said = f"Not covered, because SQL cannot point at all of their fields: {', '.join(LEFT.get(name, []))}."
    assert (said in written) == (name in LEFT)


def test_messages_told_by_patterns_are_left() -> None:
    assert sql.emit(compile_protocol(ROOT / "grammars" / "zmtp").protocol) == ""


def test_what_is_used_stands_on_a_lower_level() -> None:
    lets = Lets()
    frame = lets.let("frame", "get(_frames, 0)")
    size = lets.let("size", f"octet_length({frame})")
    assert lets.let("other", "get(_frames, 0)") == frame, "one expression, one name"
    assert lets.let("size", f"octet_length({frame}) + 1") == "_sql_size_2"
    lets.let("unused", "1")
    assert lets.levels(f"{size} > 3") == [
        [("_sql_frame", "get(_frames, 0)")],
        [("_sql_size", f"octet_length({frame})")],
    ]
