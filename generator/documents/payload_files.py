"""Files and profile entries for the payloads that a document describes.

Each payload becomes a JSON Schema in the folder ``payloads`` and a ``[[payload]]`` table of the
profile. A document may also be a JSON Schema, or include one (``.. literalinclude:: job.json``).
The schema states its document (``$comment``), so that a later import of the document replaces it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from specwire.generator.diagnostics import Diagnostics, Source, Span
from specwire.generator.documents.payload_objects import (
    DocumentPayload,
    Schema,
    find_payloads,
)
from specwire.generator.documents.profile_text import quote
from specwire.generator.documents.reading import LARGEST_DOCUMENT
from specwire.generator.ir.names import class_name
from specwire.generator.profile.tables import LoadedProfile, PayloadTable

FOLDER = "payloads"
"""Folder of the schemas, beside the profile."""

_INCLUDED = re.compile(r"[ \t]*\.\.[ \t]+literalinclude::[ \t]*(\S+\.json)[ \t]*$")
_SCHEMA_KEYS = frozenset({"$schema", "properties", "$ref", "oneOf", "anyOf", "items"})


@dataclass(frozen=True, slots=True)
class PayloadOptions:
    """What the user states about the payloads of a document.

    Attributes:
        service: first word of topics that the document states without one.
        topic: topic of a JSON Schema.
        message: class of the messages that have a JSON Schema's payload; None for all.
        comments: whether schemas keep descriptions.
    """

    service: str | None = None
    topic: str | None = None
    message: str | None = None
    comments: bool = True


@dataclass(frozen=True, slots=True)
class PayloadFile:
    """Files' content for one payload: its table of the profile, and the text of its JSON Schema."""

    table: PayloadTable
    text: str


def read_payloads(
    path: Path,
    source: Source,
    messages: Collection[str] | None,
    options: PayloadOptions,
    diagnostics: Diagnostics,
) -> tuple[PayloadFile, ...]:
    """Return the payloads that the document at `path` describes.

    Args:
        messages: class names that messages of the protocol may have; None if they are not known.
        options: what the user states about the payloads.
        diagnostics: receives payloads and topics that cannot be read, W722 to W724.
    """
    if path.suffix == ".json":
        found = _from_schema(source, options, diagnostics)
    else:
        found = find_payloads(source, diagnostics, service=options.service, comments=options.comments)
        found += _included(path, source, options, diagnostics)
    return tuple(_file(one, path, messages, options, diagnostics) for one in found)


def _from_schema(source: Source, options: PayloadOptions, diagnostics: Diagnostics) -> list[DocumentPayload]:
    """Return the payload of a document that is a JSON Schema; none without a topic."""
    span = Span(source, 1, 1, 1, 2)
    try:
        schema = json.loads(source.text)
    except (ValueError, RecursionError) as error:
        diagnostics.error("E701", span, f"the document is not JSON: {error}", "give a JSON Schema")
        return []
    if not isinstance(schema, dict) or not _SCHEMA_KEYS & set(schema):
        diagnostics.error("E702", span, "the document is JSON, but not a JSON Schema", None)
        return []
    if options.topic is None:
        title = schema.get("title") or Path(source.path).name
        message = f"it is not stated which messages have the payload {title!r}; it is skipped"
        diagnostics.warning("W722", span, message, "name their topic with --topic")
        return []
    return [DocumentPayload(options.topic, "", schema, span)]


def _included(
    path: Path, source: Source, options: PayloadOptions, diagnostics: Diagnostics
) -> Iterator[DocumentPayload]:
    """Yield the payloads of JSON Schemas that a document includes."""
    for number, line in enumerate(source.text.split("\n"), start=1):
        found = _INCLUDED.match(line)
        place = path.parent / found[1] if found else None
        if found is None or place is None or not place.is_file():
            continue
        octets = place.read_bytes()[:LARGEST_DOCUMENT]
        text = octets.decode("utf-8", "replace")
        if '"$schema"' not in text:
            continue  # an example
        start = found.start(1) + 1
        span = Span(source, number, start, number, found.end(1) + 1)
        for one in _from_schema(Source(place.as_posix(), text), options, diagnostics):
            yield replace(one, span=span)


def _file(
    payload: DocumentPayload,
    path: Path,
    messages: Collection[str] | None,
    options: PayloadOptions,
    diagnostics: Diagnostics,
) -> PayloadFile:
    message = options.message if not payload.direction else class_name(payload.direction)
    if message and messages is not None and message not in messages:
        text = f"the protocol has no message {message}, so any message may have the payload {payload.topic!r}"
        diagnostics.warning("W722", payload.span, text, "write `message` in the [[payload]] table")
        message = None
    words = [payload.topic, *([payload.direction] if payload.direction else [])]
    name = re.sub(r"[^\w.-]+", "any", ".".join(words))
    table = PayloadTable(
        topic=payload.topic,
        json_schema=f"{FOLDER}/{name}.json",
        message=message,
        name=re.sub(r"\W+", "_", name).strip("_").lower(),
    )
    schema: Schema = {"$comment": _comment(path), **payload.schema}
    return PayloadFile(table, json.dumps(schema, indent=2, ensure_ascii=False) + "\n")


def _comment(path: Path) -> str:
    return f"Written by `specwire import` from {path.name}."


def add_tables(text: str, payloads: Sequence[PayloadFile], known: Sequence[PayloadTable]) -> str:
    """Return the profile `text` with a ``[[payload]]`` table for each schema that has none yet."""
    have = {table.json_schema for table in known}
    for payload in payloads:
        table = payload.table
        if table.json_schema in have:
            continue
        lines = ["", "[[payload]]", f"topic = {quote(table.topic)}"]
        lines += [f"message = {quote(table.message)}"] if table.message else []
        lines += [f"json-schema = {quote(table.json_schema)}", f"name = {quote(table.name or '')}", ""]
        text = text.rstrip("\n") + "\n" + "\n".join(lines)
    return text


def report_gone(
    path: Path, payloads: Sequence[PayloadFile], loaded: LoadedProfile, diagnostics: Diagnostics
) -> None:
    """Report schemas of an earlier edition of the document that this edition lacks (W725)."""
    have = {payload.table.json_schema for payload in payloads}
    for number, table in enumerate(loaded.profile.payload):
        file = loaded.folder / table.json_schema
        if table.json_schema in have or not file.is_file():
            continue
        if _comment(path) in file.read_text("utf-8", "replace")[:1000]:
            place = loaded.place("payload", number, "json-schema")
            message = f"{path.name} no longer describes the payload {table.topic!r}"
            diagnostics.warning("W725", place, message, "if it is gone, remove the table and the file")
