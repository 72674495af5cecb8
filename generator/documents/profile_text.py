"""Writer of new profiles, and editor of ``[source]`` in existing ones.

An existing profile is edited as text: comments, order and layout are preserved. Only ``[source]``
changes, and the edition if the document is another one.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from specwire.generator.documents.facts import Facts
from specwire.generator.documents.senders import Role
from specwire.generator.profile import toml_places
from specwire.generator.profile.tables import AddedRules, Erratum, ProseStatement, SourceDocument


@dataclass(frozen=True, slots=True)
class Proposals:
    """Entries of a new profile that a document implies.

    Attributes:
        base: the protocol whose rules this one uses.
        errata: corrections of rules.
        rules: definitions of names that the document does not define.
        commands: the messages, where neither their form nor the dialogs show them.
        frames: rules of the grammar that a table lists as frames.
        senders: roles by message, where no dialog names it.
        fields: field name by rule, where the two differ.
        octets: rules of fixed size that are no numbers.
        constants: required value by rule.
        prose: statements outside the grammar.
    """

    base: str | None = None
    errata: Sequence[Erratum] = ()
    rules: Sequence[AddedRules] = ()
    commands: Sequence[str] = ()
    frames: Sequence[str] = ()
    senders: Mapping[str, tuple[Role, ...]] = field(default_factory=dict)
    fields: Mapping[str, str] = field(default_factory=dict)
    octets: Sequence[str] = ()
    constants: Mapping[str, str | int] = field(default_factory=dict)
    prose: Sequence[ProseStatement] = ()


def new_profile(protocol: str, facts: Facts, source: SourceDocument, proposed: Proposals) -> str:
    """Return the text of a new profile with the entries that a document implies."""
    lines = [
        f"# Completes the grammar of {facts.title}. Written by `specwire import`; edit as needed.",
        "",
        f"name = {quote(protocol)}",
        f"title = {quote(facts.title)}",
        f"edition = {quote(facts.edition)}",
    ]
    if proposed.base:
        lines.append(f"base = {quote(proposed.base)}")
    if proposed.commands:
        lines += ["", "messages = [", *(f"    {quote(command)}," for command in proposed.commands), "]"]
    lines += ["", "[source]", f"document = {quote(source.document)}", f"sha256 = {quote(source.sha256)}"]
    for erratum in proposed.errata:
        lines += ["", "[[errata]]"]
        lines += [f"{key} = {quote(getattr(erratum, key))}" for key in ("rule", "was", "now", "why")]
    for added in proposed.rules:
        lines += ["", "[[rules]]", f"why = {quote(added.why)}", f"text = '''\n{added.text}\n'''"]
    roles = {role.letter: role for sent in proposed.senders.values() for role in sent}
    for letter, role in sorted(roles.items()):
        lines += ["", f"[roles.{letter}]", f"name = {quote(role.name)}", f"socket = {quote(role.socket)}"]
    for message, sent in proposed.senders.items():
        letters = ", ".join(quote(role.letter) for role in sent)
        lines += ["", f"[message.{message}]", f"senders = [{letters}]"]
    types: dict[str, list[str]] = {frame: ["frame = true"] for frame in proposed.frames}
    for rule, name in proposed.fields.items():
        types.setdefault(rule, []).append(f"name = {quote(name)}")
    for rule in proposed.octets:
        types.setdefault(rule, []).append('type = "octets"')
    for rule, value in proposed.constants.items():
        types.setdefault(rule, []).append(f"constant = {quote(value) if isinstance(value, str) else value}")
    for rule, hints in types.items():
        lines += ["", f"[types.{rule}]", *hints]
    for statement in proposed.prose:
        lines += ["", "[[prose]]", f"text = {quote(statement.text)}"]
        lines += [f"about = {quote(statement.about)}", f"line = {statement.line}"]
    return "\n".join(lines) + "\n"


def edit_source(text: str, *, document: str | None, sha256: str) -> str:
    """Return the profile `text` with the document's name (None: unchanged) and digest in ``[source]``."""
    wanted = {"document": document or _stated(text).get("document") or "", "sha256": sha256}
    if "source" not in tomllib.loads(text):
        lines = [f"{key} = {quote(value)}" for key, value in wanted.items()]
        return "\n".join([text.rstrip("\n"), "", "[source]", *lines, ""]).lstrip("\n")
    for key, value in wanted.items():
        if _stated(text).get(key) != value:
            text = _set(text, key, value)
    return text


def edit_edition(text: str, edition: str) -> str:
    """Return the profile `text` with another edition; a profile without an edition is unchanged."""
    place = toml_places.find_places(text).get(("edition",))
    if place is None or place.content is None:
        return text
    start, end = _with_quotes(text, *place.content)
    return text[:start] + quote(edition) + text[end:]


def without_errata(text: str, numbers: Collection[int]) -> str:
    """Return the profile `text` without the errata of these numbers, from 0.

    Unchanged if they cannot be removed.
    """
    wanted = tomllib.loads(text)
    kept = [erratum for number, erratum in enumerate(wanted.get("errata", [])) if number not in numbers]
    wanted["errata"] = kept
    places = toml_places.find_places(text)
    shorter = text
    for number in sorted(numbers, reverse=True):
        start = text.rfind("[[errata]]", 0, places["errata", number, "rule"].start)
        following = re.compile(r"^\[", re.MULTILINE).search(text, start + 2)
        shorter = shorter[:start] + (shorter[following.start() :] if following else "")
    if not kept:
        del wanted["errata"]
    return shorter if _reads_as(shorter, wanted) else text


def quote(text: str) -> str:
    """Return the text as a TOML string, a literal string if it has quotes or backslashes."""
    if ('"' in text or "\\" in text) and "'" not in text and text.isprintable():
        return f"'{text}'"
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _stated(text: str) -> dict[str, str]:
    source = tomllib.loads(text).get("source", {})
    return source if isinstance(source, dict) else {}


def _set(text: str, key: str, value: str) -> str:
    """Replace the value of ``source.key``, or add the key in the notation of the table."""
    place = toml_places.find_places(text).get(("source", key))
    if place is not None and place.content is not None:
        start, end = _with_quotes(text, *place.content)
        return text[:start] + quote(value) + text[end:]
    wanted = tomllib.loads(text)
    wanted["source"] = {**wanted["source"], key: value}
    return next((added for added in _added(text, key, value) if _reads_as(added, wanted)), text)


def _added(text: str, key: str, value: str) -> Iterator[str]:
    """Yield candidates for the text with the key added, one for each notation of a TOML table."""
    places = toml_places.find_places(text)
    sibling = places.get(("source", "document")) or places[("source",)]
    end = _with_quotes(text, *sibling.content)[1] if sibling.content else sibling.end
    line_end = text.find("\n", end)
    line_end = len(text) if line_end < 0 else line_end
    for name in (key, f"source.{key}"):
        yield f"{text[:line_end]}\n{name} = {quote(value)}{text[line_end:]}"
    yield f"{text[:end]}, {key} = {quote(value)}{text[end:]}"


def _reads_as(text: str, wanted: dict[str, object]) -> bool:
    try:
        return tomllib.loads(text) == wanted
    except tomllib.TOMLDecodeError:
        return False


def _with_quotes(text: str, start: int, end: int) -> tuple[int, int]:
    """Widen the place of a string's content to its quotes, single or triple."""
    mark = text[end : end + 1]
    width = 3 if text[end : end + 3] == mark * 3 and text[start - 3 : start].strip("\n\r") == mark * 3 else 1
    return start - width, end + width
