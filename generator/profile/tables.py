"""Schema of ``profile.toml``, which declares for a grammar what ABNF cannot express.

A profile names its protocol and source, corrects faults of the published grammar (`Erratum`), adds rules
that no document writes as ABNF (`AddedRules`), and declares what the passes would otherwise assume: types,
presence, roles, dialogs, timers, answers. It may extend the profile of another protocol (``base``). Then the
grammar is the base's, except for rules of the same name in its own, and its tables override the base's.
docs/reference/grammars.md shows every key. `specwire.generator.profile.reader` reads the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import msgspec

from specwire.generator.diagnostics import Source, Span
from specwire.generator.ir import Answer, TimeUnit
from specwire.generator.ir.dialogs import DialogSettings
from specwire.generator.profile import toml_places


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table of the profile: an unknown key is an error, not ignored."""


class SourceDocument(_Table, frozen=True):
    """The published document and the SHA-256 of the copy that the grammar was taken from."""

    document: str
    sha256: str = ""


class Erratum(_Table, frozen=True):
    """A fault in the published grammar: the definition as published, the corrected one, and the reason."""

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


ValueKind = Literal[
    "integer",
    "float",
    "boolean",
    "varint",
    "decimal",
    "hexadecimal",
    "uuid",
    "text",
    "octets",
    "json",
    "padding",
]


class BitTable(_Table, frozen=True):
    """Declared meaning of some bits of an integer.

    One bit is a boolean unless `type` is ``integer``. `constant`, `members`, `closed`, `counts`,
    `plus`, `counting`, `default`, `unit`, `doc`, `timestamp` and `epoch` are as in `TypeHint`.
    `spare` bits have no meaning.
    """

    width: int
    type: Literal["integer", "boolean"] | None = None
    constant: int | None = None
    members: dict[str, int] = {}
    closed: bool = False
    spare: bool = False
    counts: str | list[str] = []
    plus: int = 0
    counting: Literal["octets", "items"] | None = None
    default: str | int | bool | None = None
    unit: str | None = None
    doc: str | None = None
    timestamp: TimeUnit | None = None
    epoch: str | None = None


class PresenceTable(_Table, frozen=True):
    """Condition for a value inside a frame.

    The number in the earlier rule or bits `field`, and `mask` if given, is one of `values`. Without
    `values`, all bits of the mask are set, or the named bit is 1.
    """

    field: str
    mask: int = 0
    values: list[int] = []


OF_FIELDS = frozenset({"name", "default", "unit", "doc", "content", "timestamp", "epoch"})
"""Keys that the profile may set for a rule in one message, where they replace those of the rule."""


class TypeHint(_Table, frozen=True):
    """Declared meaning of a rule that is a value.

    `order` and `signed` say how a number is written; of a varint, `signed` is also the kind.
    `counts` names the later rules of the same run whose octets, or items if it is one list, the
    number counts; `plus` is added. `counting` says which of the two it is for a list. `checksum`
    names an algorithm, and `over` the rules of the same run that it covers. `multiple` is for
    padding up to a multiple of octets.

    `constant` fixes the value. `members` makes an integer an enumeration; it is `closed` if no
    other value is allowed. `split` selects the ``=`` at which a pair is divided. `presence` names
    the flag rules that announce the part, or says on which number of the frame a value depends.
    `bits` are the parts of an integer, the most significant first: a width or a table for each
    name. `frame` makes the rule a separate ZeroMQ frame. `padding` is the octet that fills a text
    of fixed length after its content. `scope` declares what a size counts: the ``next`` value, the
    ``rest`` of its rule, or nothing in the layout (``none``). `content` declares the format of text
    or octets for readers of tables; the layout does not use it. Neither does it use `timestamp`,
    which makes a number the time in that unit since `epoch` (without it, 1970).
    """

    type: ValueKind | None = None
    order: Literal["big", "little"] | None = None
    signed: bool | Literal["zigzag", "complement"] | None = None
    counts: str | list[str] = []
    plus: int = 0
    counting: Literal["octets", "items"] | None = None
    checksum: str | None = None
    over: str | list[str] = []
    multiple: int | None = None
    constant: str | int | None = None
    members: dict[str, int] = {}
    closed: bool = False
    split: Literal["first", "last"] | None = None
    name: str | None = None
    default: str | int | float | bool | None = None
    unit: str | None = None
    doc: str | None = None
    frame: bool = False
    presence: str | list[str] | PresenceTable = []
    bits: dict[str, int | BitTable] = {}
    padding: int | None = None
    scope: Literal["next", "rest", "none"] | None = None
    content: Literal["json"] | None = None
    timestamp: TimeUnit | None = None
    epoch: str | None = None

    def with_fields_of(self, other: TypeHint) -> TypeHint:
        """Return the hint with the keys in `OF_FIELDS` of another, and its `presence` if that has one."""
        changes = {key: getattr(other, key) for key in OF_FIELDS}
        return msgspec.structs.replace(self, **changes, presence=other.presence or self.presence)

    @property
    def flag_rules(self) -> list[str]:
        """The names in `presence`."""
        if isinstance(self.presence, PresenceTable):
            return []
        return [self.presence] if isinstance(self.presence, str) else self.presence

    def bit_tables(self) -> Iterator[tuple[str, int, BitTable]]:
        """Yield name, number of the bits below, and declaration of each of `bits`."""
        shift = sum(_width(bit) for bit in self.bits.values())
        for name, bit in self.bits.items():
            shift -= _width(bit)
            yield name, shift, bit if isinstance(bit, BitTable) else BitTable(bit)


def _width(bit: int | BitTable) -> int:
    return bit.width if isinstance(bit, BitTable) else bit


NOTHING_SAID = TypeHint()
"""The hint of a rule that the profile does not mention."""


class MessageTable(_Table, frozen=True):
    """Declarations for one message.

    `defaults` of parts, `senders` if no dialog defines them, and the parts that ``strict=True`` requires or
    forbids (`letter`).
    """

    defaults: dict[str, Any] = {}
    senders: tuple[str, ...] = ()
    letter: dict[str, Literal["required", "forbidden"]] = {}


class StreamTable(_Table, frozen=True):
    """How messages travel on a byte stream.

    The first four keys define the framing of parts (see `specwire.generator.ir.Stream`). ``units``
    declares whether messages of one frame follow each other without framing, each with its own
    length; None infers it from the layouts.
    """

    magics: tuple[str, ...] = ()
    length_octets: int = 0
    escape: int = 0
    long_octets: int = 0
    units: bool | None = None


class PayloadTable(_Table, frozen=True):
    """Payloads of one kind with a JSON Schema in a file beside the profile.

    Packages do not use it; `specwire.runtime.schemas.payloads` derives table columns from it.
    `topic` is the value of the field `by`, with ``*`` for any characters.
    """

    topic: str
    json_schema: str = msgspec.field(name="json-schema")
    by: str = "topic"
    message: str | None = None
    field: str | None = None
    name: str | None = None


class ProseStatement(_Table, frozen=True):
    """Words of the document's prose about something that the grammar does not show.

    ``specwire import`` writes the table, and ``specwire check`` compares it with the layouts until
    it is removed. `line` is the line of the document, from 1; 0 if it is unknown.
    """

    text: str
    about: Literal["frames", "letters", "numbers"]
    line: int = 0


class CoverageEntry(_Table, frozen=True):
    """A part of the document that the user has read: `why` says what covers it, or why nothing has to.

    `text` is words of a sentence or an example, `section` a heading. An entry with both is about the
    sentences of that section that have these words. ``specwire check --coverage`` reads the table.
    """

    why: str
    text: str = ""
    section: str = ""


class Profile(_Table, frozen=True):
    """The whole file.

    With ``case = "exact"``, quoted strings of the grammar are case-sensitive. `max_depth` is the
    maximum number of values that contain each other, if a rule contains itself. With `single_frame`,
    each message is one frame although the document mentions more. `redact` names the fields with
    content, as FIELD or MESSAGE.FIELD: captures may omit, cut or hash their values. Without it,
    every frame of a message is content.
    """

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
    stream: StreamTable | None = None
    payload: tuple[PayloadTable, ...] = ()
    case: Literal["exact"] | None = None
    max_depth: int = 64
    single_frame: bool = False
    redact: tuple[str, ...] | None = None
    prose: tuple[ProseStatement, ...] = ()
    coverage: tuple[CoverageEntry, ...] = ()


@dataclass(frozen=True)
class LoadedProfile:
    """A profile with its text, into which diagnostics point, its folder, and its base if it has one."""

    profile: Profile
    source: Source
    base: LoadedProfile | None = None
    folder: Path = field(default_factory=Path)

    @property
    def levels(self) -> Iterator[LoadedProfile]:
        """This profile, the one that it extends, and so on."""
        level: LoadedProfile | None = self
        while level is not None:
            yield level
            level = level.base

    @cached_property
    def places(self) -> dict[toml_places.Path, toml_places.Place]:
        """The places of the keys in the file."""
        return toml_places.find_places(self.source.text)

    def place(self, *path: str | int) -> Span:
        """Return the place of a key in the file, of this profile or a base, that has most of its path.

        ``("types", "credit", "unit")`` is the word ``unit`` in ``[types.credit]``. If there is no
        such key, the place of the table is returned; if there is no table, the first line.
        """
        for length in range(len(path), 0, -1):
            for level in self.levels:
                if found := level.places.get(path[:length]):
                    return level.span(found.start, found.end)
        return Span(self.source, 1, 1, 1, 2)

    def span(self, start: int, end: int) -> Span:
        """Return the place of the characters from `start` to `end` of the file."""
        text = self.source.text
        line = text.count("\n", 0, start) + 1
        column = start - text.rfind("\n", 0, start)
        return Span(self.source, line, column, line, column + max(1, end - start))

    def span_of(self, *words: str) -> Span:
        """Return the place of the first line that holds all `words`, else the first line.

        The search covers this file and its bases. Use `place` if the path of the key is known.
        """
        for level in self.levels:
            for number, line in enumerate(level.source.text.splitlines(), start=1):
                if all(word in line for word in words):
                    column = line.index(words[0]) + 1
                    return Span(level.source, number, column, number, column + len(words[0]))
        return Span(self.source, 1, 1, 1, 2)
