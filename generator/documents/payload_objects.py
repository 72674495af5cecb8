"""JSON Schemas from the ``.. object::`` directives of a reStructuredText document.

    .. object:: disk.usage response

      .. object:: free

        (*integer*, REQUIRED) Octets that are free.

A title that ends with *request*, *response* or *event* names a payload. Its first word is the topic;
words in between name one of several forms, which a constant key distinguishes. In a topic, a word in
capitals is any word. The directives inside are the keys. Keys outside a payload describe the object
that their section is called after, and a key whose text refers to that section has its type.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from specwire.generator.diagnostics import Diagnostics, Source, Span
from specwire.generator.documents.markup import find_regions

Schema = dict[str, Any]

DIRECTIONS = ("request", "response", "event")

_DIRECTIVE = re.compile(r"([ \t]*)\.\.[ \t]+object::[ \t]*(\S.*?)[ \t]*$")
_UNDERLINE = re.compile(r"([^\w\s])\1{2,}[ \t]*$")
_STATED = re.compile(r"\(\*(?P<type>[^*]+)\*,?[ ]*(?P<presence>REQUIRED|OPTIONAL)\)[ ]*(?P<text>[^(]*)")
_LIST = re.compile(r"(?:array|list) of (?P<item>.+?)s?$")
_CONSTANT = re.compile(r"\bwith (?:a|the) value (?:of )?``([^`]+)``")
_REFERENCE = re.compile(r"`([^`<]+?)(?: <[^>]*>)?`_")
_VALUES = re.compile(
    r"\b(?:values|which|elements) (?:SHALL|MUST|shall|must) be of type (?::type:`|\*|``)?(?P<type>\w+)"
)
_MARKUP = re.compile(
    r":[\w:]+:`(?P<role>[^`<]+?)(?: <[^>]*>)?`|`{1,2}(?P<code>[^`]+)`{1,2}_?|\*(?P<word>[^*]+)\*"
)
_TYPES: Mapping[str, str] = {
    "string": "string",
    "text": "string",
    "integer": "integer",
    "int": "integer",
    "real": "number",
    "number": "number",
    "float": "number",
    "double": "number",
    "boolean": "boolean",
    "bool": "boolean",
    "object": "object",
    "dictionary": "object",
    "array": "array",
    "list": "array",
}


class Title(NamedTuple):
    """Title of a payload: its topic, the name of a form or an empty text, and its direction."""

    topic: str
    form: str
    direction: str


@dataclass
class Directive:
    """An ``.. object::`` directive with the text and the directives inside it, and its section."""

    title: str
    span: Span
    indent: int
    section: str
    lines: list[str] = field(default_factory=list)
    inner: list[Directive] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The text without line ends."""
        return " ".join(" ".join(self.lines).split())


@dataclass(frozen=True, slots=True)
class DocumentPayload:
    """A payload with its JSON Schema, and its place in the document; `topic` may have ``*`` in it."""

    topic: str
    direction: str
    schema: Schema
    span: Span


def find_payloads(
    source: Source, diagnostics: Diagnostics, *, service: str | None = None, comments: bool = True
) -> list[DocumentPayload]:
    """Return the payloads with keys that a document describes, in its order.

    Args:
        service: first word of topics that the document states without one; None for the one that
            the document mentions.
        comments: whether the schemas have the first sentences of the document's descriptions.
    """
    roots = list(_read_directives(source))
    reader = _Reader(_shared(roots), diagnostics, comments=comments)
    forms: dict[tuple[str, str], list[tuple[Directive, str]]] = {}
    for directive in roots:
        if _STATED.match(directive.text):
            continue  # a key of the section's object
        title = _read_title(directive.title)
        if title is not None:
            forms.setdefault((title.topic, title.direction), []).append((directive, title.form))
        elif directive.inner:
            message = f"it is not clear which messages have the payload {directive.title!r}"
            help = "a title is a topic and 'request', 'response' or 'event'"
            diagnostics.warning("W722", directive.span, message, help)
    found = [
        DocumentPayload(topic, direction, reader.payload(described), described[0][0].span)
        for (topic, direction), directives in forms.items()
        if (described := [(one, form) for one, form in directives if one.inner])
    ]
    return _with_services(found, source, service, diagnostics)


def _read_directives(source: Source) -> Iterator[Directive]:
    """Yield the directives that are in no other one."""
    lines = source.text.split("\n")
    quoted = {n for region in find_regions(lines) for n in range(region.start, region.last)}
    section, open_ones = "", list[Directive]()
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        indent = len(line.expandtabs(8)) - len(line.expandtabs(8).lstrip())
        while open_ones and indent <= open_ones[-1].indent:
            open_ones.pop()
        if indent == 0 and number + 1 < len(lines) and _UNDERLINE.match(lines[number + 1]):
            section = line.strip()
        elif (found := _DIRECTIVE.match(line)) and number not in quoted:
            start = found.start(2) + 1
            span = Span(source, number + 1, start, number + 1, start + len(found[2]))
            directive = Directive(found[2], span, indent, section)
            if open_ones:
                open_ones[-1].inner.append(directive)
            else:
                yield directive
            open_ones.append(directive)
        elif open_ones:
            open_ones[-1].lines.append(line.strip())


def _shared(roots: Sequence[Directive]) -> dict[str, list[Directive]]:
    """Return the keys of each object that a section describes, by the section's title in lower case."""
    shared: dict[str, list[Directive]] = {}
    for directive in roots:
        if _STATED.match(directive.text):
            shared.setdefault(directive.section.lower(), []).append(directive)
    return shared


def _read_title(title: str) -> Title | None:
    words = title.split()
    if len(words) < 2 or words[-1] not in DIRECTIONS:
        return None
    topic = ".".join("*" if word.isupper() else word for word in words[0].split("."))
    return Title(topic, " ".join(words[1:-1]), words[-1])


class _Reader:
    """Makes schemas of directives."""

    def __init__(
        self, shared: Mapping[str, list[Directive]], diagnostics: Diagnostics, *, comments: bool
    ) -> None:
        self._shared = shared
        self._diagnostics = diagnostics
        self._comments = comments
        self._definitions: dict[str, Schema] = {}

    def payload(self, forms: Sequence[tuple[Directive, str]]) -> Schema:
        """Return the schema of a payload with its definitions; several forms become alternatives."""
        self._definitions = {}
        schemas = []
        for directive, form in forms:
            title = {"title": form} if form and len(forms) > 1 else {}
            schemas.append(title | self._object(directive.inner))
        schema = schemas[0] if len(schemas) == 1 else _one_of(schemas)
        return schema | ({"$defs": self._definitions} if self._definitions else {})

    def _object(self, keys: Sequence[Directive]) -> Schema:
        properties, required = dict[str, Schema](), list[str]()
        schema: Schema = {"type": "object", "properties": properties}
        for key in keys:
            if key.title.endswith("..."):
                schema["additionalProperties"] = True
                continue
            stated = _STATED.match(key.text)
            if stated is None:
                message = f"the text of key {key.title!r} does not begin with its type and presence"
                self._diagnostics.warning("W723", key.span, message, "it may have any value")
            properties[key.title] = self._key(key, stated)
            if stated and stated["presence"] == "REQUIRED":
                required.append(key.title)
            self._report_nameless(key)
        return schema | ({"required": required} if required else {})

    def _key(self, key: Directive, stated: re.Match[str] | None) -> Schema:
        if stated is None:
            return {}
        schema = self._type(key, " ".join(stated["type"].split()))
        values = _VALUES.search(key.text)
        kind = _TYPES.get(values["type"]) if values else None
        if key.inner:
            inner = self._object(key.inner)
        else:
            inner = self._referred(key) or ({"type": kind} if kind else {})
        if inner and schema.get("type") == "array" and schema.get("items") in (None, {"type": "object"}):
            schema["items"] = inner
        elif inner and schema.get("type") == "object":
            schema = {"type": "object", "additionalProperties": inner} if inner == {"type": kind} else inner
        if constant := _CONSTANT.search(key.text):
            schema["const"] = constant[1]
        sentence = _first_sentence(stated["text"])
        return {"description": sentence} | schema if self._comments and sentence else schema

    def _type(self, key: Directive, words: str) -> Schema:
        if kind := _TYPES.get(words):
            return {"type": kind}
        if found := _LIST.match(words):
            item = _TYPES.get(found["item"])
            return {"type": "array"} | ({"items": {"type": item}} if item else {})
        message = f"{words!r} is not a type of JSON"
        self._diagnostics.warning("W723", key.span, message, f"the key {key.title!r} may have any value")
        return {}

    def _referred(self, key: Directive) -> Schema:
        """Return a reference to the object of the section to which a key's text refers."""
        for name in _REFERENCE.findall(key.text):
            keys = self._shared.get(name.lower())
            if keys is None:
                continue
            short = re.sub(r"\W+", "-", name.lower()).strip("-")
            if short not in self._definitions:
                self._definitions[short] = {}  # it may refer to itself
                self._definitions[short] = self._object(keys)
            return {"$ref": f"#/$defs/{short}"}
        return {}

    def _report_nameless(self, key: Directive) -> None:
        for stated in list(_STATED.finditer(key.text))[1:]:
            message = f"an entry inside {key.title!r} has the type {stated['type']!r} but no name"
            help = "it is skipped; add the key to the schema by hand"
            self._diagnostics.warning("W724", key.span, message, help)


def _one_of(schemas: Sequence[Schema]) -> Schema:
    """Return a schema of alternatives; the keys of all are beside them, for readers that need columns."""
    merged: dict[str, Schema] = {}
    for schema in schemas:
        for name, inner in schema["properties"].items():
            plain = {key: value for key, value in inner.items() if key not in ("const", "description")}
            merged[name] = plain if merged.get(name, plain) == plain else {}
    required = [name for name in merged if all(name in schema.get("required", ()) for schema in schemas)]
    return {"type": "object", "properties": merged, "required": required, "oneOf": list(schemas)}


def _first_sentence(text: str) -> str:
    plain = _MARKUP.sub(lambda found: found["role"] or found["code"] or found["word"], text.strip())
    return re.split(r"(?<=[.:])(?<!e\.g\.)(?<!i\.e\.)\s", plain, maxsplit=1)[0].rstrip(":")


def _with_services(
    found: Sequence[DocumentPayload], source: Source, service: str | None, diagnostics: Diagnostics
) -> list[DocumentPayload]:
    """Put the service before topics without one: `service`, or the only one that the document mentions."""
    short = [one for one in found if "." not in one.topic]
    methods = "|".join(re.escape(one.topic) for one in short)
    mentioned = set(re.findall(rf"``([a-z][\w-]*)\.(?:{methods})``", source.text)) if short else set()
    if service is None and len(mentioned) == 1:
        service = mentioned.pop()
    stated = {one.topic for one in short if re.search(rf"topic(?: string)?\s+``{one.topic}``", source.text)}
    result = []
    for one in found:
        if one in short and one.topic not in stated:
            if service is None:
                message = f"the topic {one.topic!r} names no service"
                help = "name it with --service if messages have one, such as --service disk for disk.usage"
                diagnostics.warning("W722", one.span, message, help)
            else:
                one = DocumentPayload(f"{service}.{one.topic}", one.direction, one.schema, one.span)
        result.append(one)
    return result
