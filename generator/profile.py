"""What ABNF cannot say of a protocol: ``profile.toml`` beside its grammar.

A profile names its protocol and source, mends faults of the published grammar (`Erratum`), adds rules
that no document writes as ABNF (`AddedRules`), and declares what the passes would otherwise assume:
types, presence, roles, dialogs, timers, answers. It may stand on another protocol's (``base``): then the
grammar is the base's, its own rules replace the base's of the same name, and its tables are laid over
the base's.

Faults are E5xx diagnostics that point into the TOML file.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from specwire.generator.diagnostics import Diagnostics, Source, Span
from specwire.generator.dialogs import DialogSettings
from specwire.generator.ir import Answer, Stream

NAME = re.compile(r"[a-z][a-z0-9_]*\Z")


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table of the profile: an unknown key is an error, not ignored."""


class SourceDocument(_Table, frozen=True):
    """The published document and the SHA-256 of the copy that the grammar was taken from."""

    document: str
    sha256: str = ""


class Erratum(_Table, frozen=True):
    """A fault in the published grammar: the right-hand side as published, what it becomes, and why."""

    rule: str
    was: str
    now: str
    why: str


class AddedRules(_Table, frozen=True):
    """Rules that the document gives in prose or that practice adds, with the reason."""

    why: str
    text: str


class RoleTable(_Table, frozen=True):
    """One side of the dialog."""

    name: str
    socket: str
    doc: str = ""


class TypeHint(_Table, frozen=True):
    """What a rule means where it stands for a value.

    `constant` fixes the value; `members` makes an integer an enumeration; `split` says at which ``=`` a
    pair is divided; `presence` names the flag rules that announce the part; `frame` says that the rule
    is a ZeroMQ frame of its own.
    """

    type: Literal["integer", "text", "octets", "json"] | None = None
    constant: str | int | None = None
    members: dict[str, int] = {}
    split: Literal["first", "last"] | None = None
    name: str | None = None
    default: str | int | None = None
    unit: str | None = None
    doc: str | None = None
    frame: bool = False
    presence: str | list[str] = []


class MessageTable(_Table, frozen=True):
    """What holds for one message only: defaults of parts, and what the letter demands of them."""

    defaults: dict[str, Any] = {}
    letter: dict[str, Literal["required", "forbidden"]] = {}


class Profile(_Table, frozen=True):
    """The whole file."""

    name: str
    title: str = ""
    edition: str = ""
    base: str | None = None
    source: SourceDocument = SourceDocument("")
    messages: tuple[str, ...] = ()
    errata: tuple[Erratum, ...] = ()
    rules: tuple[AddedRules, ...] = ()
    roles: dict[str, RoleTable] = {}
    types: dict[str, TypeHint] = {}
    message: dict[str, MessageTable] = {}
    dialogs: tuple[DialogSettings, ...] = ()
    timers: dict[str, float] = {}
    constants: dict[str, int] = {}
    answers: tuple[Answer, ...] = ()
    unexpected: dict[str, str] = {}
    stream: Stream | None = None


@dataclass(frozen=True, slots=True)
class LoadedProfile:
    """A profile with its text, which diagnostics point into, and its base where it has one."""

    profile: Profile
    source: Source
    base: LoadedProfile | None = None

    def span_of(self, *words: str) -> Span:
        """Return the place of the first line that holds all `words`, else the first line.

        TOML readers keep no places; the words are a table's header or a key and its value.
        """
        for number, line in enumerate(self.source.text.splitlines(), start=1):
            if all(word in line for word in words):
                column = line.index(words[0]) + 1
                return Span(self.source, number, column, number, column + len(words[0]))
        return Span(self.source, 1, 1, 1, 2)

    def rule_texts(self) -> list[str]:
        """Return each added grammar text, with blank lines before it that keep the file's line numbers."""
        texts: list[str] = []
        position = 0
        for rules in self.profile.rules:
            first = next(line for line in rules.text.splitlines() if line.strip())
            position = self.source.text.index(first, position)
            lead = len(rules.text) - len(rules.text.lstrip("\n"))
            line = self.source.text.count("\n", 0, position)
            texts.append("\n" * line + rules.text[lead:])
            position += len(first)
        return texts


def load_profile(
    folder: Path, diagnostics: Diagnostics, *, display: str | None = None
) -> LoadedProfile | None:
    """Read ``folder/profile.toml``; a missing file is the empty profile of a protocol named as the folder.

    Returns None where the file cannot be read at all; `diagnostics` then says why.
    """
    path = folder / "profile.toml"
    shown = display or str(path)
    if not path.exists():
        source = Source(shown, "")
        return LoadedProfile(Profile(name=folder.name, title=folder.name, edition=folder.name), source)
    source = Source(shown, path.read_text(encoding="utf-8"))
    try:
        profile = msgspec.convert(tomllib.loads(source.text), Profile)
    except tomllib.TOMLDecodeError as error:
        diagnostics.error("E501", _toml_place(source, str(error)), f"not TOML: {error}")
        return None
    except msgspec.ValidationError as error:
        diagnostics.error("E502", _key_place(source, str(error)), f"profile: {error}")
        return None
    loaded = LoadedProfile(profile, source)
    if not NAME.match(profile.name):
        diagnostics.error(
            "E503", loaded.span_of("name"), f"{profile.name!r} cannot name a package",
            "use lower-case letters, digits and '_', a letter first",
        )  # fmt: skip
    if profile.base is None:
        return loaded
    base_folder = folder.parent / profile.base
    if not (base_folder / "profile.toml").exists():
        diagnostics.error("E504", loaded.span_of("base"), f"base protocol {profile.base!r} has no profile")
        return None
    base = load_profile(base_folder, diagnostics, display=shown.replace(folder.name, profile.base))
    if base is None:
        return None
    return LoadedProfile(_lay_over(base.profile, profile), source, base)


def _lay_over(base: Profile, profile: Profile) -> Profile:
    """Return `profile` with the base's tables under its own; rules and errata stay where they are."""
    merged: dict[str, Any] = {}
    for name in ("roles", "types", "message", "timers", "constants", "unexpected"):
        merged[name] = {**getattr(base, name), **getattr(profile, name)}
    for name in ("messages", "dialogs", "answers", "stream"):
        merged[name] = getattr(profile, name) or getattr(base, name)
    return msgspec.structs.replace(profile, **merged)


def _toml_place(source: Source, message: str) -> Span:
    found = re.search(r"line (\d+), column (\d+)", message)
    line, column = (int(found[1]), int(found[2])) if found else (1, 1)
    return Span(source, line, column, line, column + 1)


def _key_place(source: Source, message: str) -> Span:
    """Point at the key that msgspec's message names in its path or as unknown field."""
    found = re.search(r"unknown field `([^`]+)`", message) or re.search(
        r"at `\$(?:[^`]*?)([\w-]+)(?:\[[^`]*)?`", message
    )
    key = found[1] if found else ""
    for number, line in enumerate(source.text.splitlines(), start=1):
        if key and re.search(rf"(^|[.\[{{\s\"]){re.escape(key)}([\].\s=\"]|$)", line):
            column = line.index(key) + 1
            return Span(source, number, column, number, column + len(key))
    return Span(source, 1, 1, 1, 2)
