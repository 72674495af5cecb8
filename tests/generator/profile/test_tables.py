"""The document for people who write profiles shows every key, and what it shows can be read."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from specwire.generator.diagnostics import Diagnostics, Source
from specwire.generator.ir import Answer
from specwire.generator.ir.dialogs import DialogSettings
from specwire.generator.profile.tables import (
    AddedRules,
    BitTable,
    Erratum,
    LoadedProfile,
    MessageTable,
    PayloadTable,
    PresenceTable,
    Profile,
    RoleTable,
    SourceDocument,
    StreamTable,
    TypeHint,
)
from specwire.generator.profile.value_checks import check_values

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "reference" / "grammars.md"
TABLES = (
    Profile, SourceDocument, Erratum, AddedRules, RoleTable, TypeHint, MessageTable, DialogSettings, Answer, StreamTable,
    PayloadTable, BitTable, PresenceTable,
)  # fmt: skip


def shown() -> str:
    """Return the examples of the document's second part as one profile."""
    _, _, part = DOCUMENT.read_text("utf-8").partition("## profile.toml")
    return "\n".join(line.removeprefix("    ") for line in part.split("\n") if line.startswith("    "))


def keys(value: object) -> Iterator[str]:
    match value:
        case dict():
            for key, inner in value.items():
                yield key
                yield from keys(inner)
        case list():
            for inner in value:
                yield from keys(inner)


def test_the_examples_of_the_document_are_a_profile() -> None:
    profile = msgspec.convert(tomllib.loads(shown()), Profile)
    diagnostics = Diagnostics()
    check_values(LoadedProfile(profile, Source("profile.toml", shown())), diagnostics)
    assert not list(diagnostics)


def test_the_document_shows_every_key() -> None:
    beside = re.findall(r"`(\w+) = ", DOCUMENT.read_text("utf-8"))
    used = {*keys(tomllib.loads(shown())), *beside}
    assert {field for table in TABLES for field in table.__struct_encode_fields__} <= used


def test_the_document_names_only_codes_that_exist() -> None:
    folder = DOCUMENT.parents[2] / "generator"
    defined = {
        code
        for path in folder.rglob("*.py")
        for code in re.findall(r'"([EW]\d{3})"', path.read_text("utf-8"))
    }
    assert set(re.findall(r"\b[EW]\d{3}\b", DOCUMENT.read_text("utf-8"))) <= defined
