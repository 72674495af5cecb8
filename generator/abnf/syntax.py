"""The syntax tree of an ABNF grammar, each node with its place in the file.

The names are those of RFC 5234. Groups have no separate node: ``(a / b) c`` is a concatenation whose
first item is an alternation. An alternation or a concatenation of one item is that item.

`write_element` and its siblings return ABNF text that parses to the same nodes. The text is RFC 5234 with
RFC 7405, except for roles in front of names and ``_`` in names.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from specwire.generator.diagnostics import Span


@dataclass(frozen=True, slots=True)
class Reference:
    """The name of a rule, with the role that sends it where one is written (``C:OHAI``)."""

    name: str
    role: str | None
    span: Span = field(compare=False)

    def __str__(self) -> str:
        return f"{self.role}:{self.name}" if self.role else self.name


@dataclass(frozen=True, slots=True)
class CharVal:
    """A quoted string; it is case-insensitive unless it begins with ``%s`` (RFC 5234, RFC 7405)."""

    text: str
    case_sensitive: bool
    span: Span = field(compare=False)
    case_marked: bool = field(default=False, compare=False)
    """The string has RFC 7405's prefix ``%i``: the document declares it case-insensitive."""


@dataclass(frozen=True, slots=True)
class NumVal:
    """Character values that follow each other: ``%xAA.BB`` is ``(0xAA, 0xBB)``."""

    values: tuple[int, ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class NumRange:
    """One character value between `first` and `last`, both included: ``%x30-39``."""

    first: int
    last: int
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class ProseVal:
    """A description in words, ``<like this>``: RFC 5234's last resort."""

    text: str
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Repetition:
    """`minimum` to `maximum` (None: no bound) of `element`; ``4OCTET`` is exactly four."""

    minimum: int
    maximum: int | None
    element: Element
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Option:
    """``[element]``: none or one."""

    element: Element
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Concatenation:
    """Two or more elements that follow each other."""

    items: tuple[Element, ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Alternation:
    """Two or more elements, one of which is meant."""

    items: tuple[Element, ...]
    span: Span = field(compare=False)


Element = (
    Alternation | Concatenation | Repetition | Option | Reference | CharVal | NumVal | NumRange | ProseVal
)


@dataclass(frozen=True, slots=True)
class Comment:
    """The text of one ``;`` comment, without the semicolon and surrounding white space."""

    text: str
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Rule:
    """``name = definition``, with the comments that belong to it.

    `leading` are the comment lines directly above the rule, no blank line between; `trailing` those on
    its own lines and on continuation lines. `incremental` rules are written ``=/``.
    """

    name: str
    role: str | None
    definition: Element
    incremental: bool
    leading: tuple[Comment, ...]
    trailing: tuple[Comment, ...]
    span: Span = field(compare=False)
    """The rule from the first octet of its name to the last of its definition."""
    name_span: Span = field(compare=False)

    @property
    def published_line(self) -> int:
        """The rule's line in the published grammar, from 1; 0 for a rule that only a profile has."""
        return self.span.line if self.span.source.path.endswith(".abnf") else 0

    def __str__(self) -> str:
        return f"{self.role}:{self.name}" if self.role else self.name


@dataclass(frozen=True, slots=True)
class Rulelist:
    """The rules of one grammar in the order of the file, repetitions included."""

    rules: tuple[Rule, ...]
    loose_comments: tuple[Comment, ...] = field(default=(), compare=False)
    """Comments between empty lines, which belong to no rule."""


def write_grammar(rulelist: Rulelist) -> str:
    """Return the rules, each on one line, with their comments."""
    return "".join(_with_comments(rule) for rule in rulelist.rules)


def write_rule(rule: Rule) -> str:
    """Return the rule in one line, without comments."""
    return f"{rule} {'=/' if rule.incremental else '='} {write_element(rule.definition)}"


def write_element(element: Element) -> str:
    """Return the element in one line, with parentheses only where they change the meaning."""
    match element:
        case Alternation():
            return " / ".join(_grouped(item, Alternation) for item in element.items)
        case Concatenation():
            return " ".join(_grouped(item, Alternation, Concatenation) for item in element.items)
        case Repetition():
            repeated = _grouped(element.element, Alternation, Concatenation, Repetition)
            return _write_repeat(element, repeated) + repeated
        case Option():
            return f"[ {write_element(element.element)} ]"
        case Reference():
            return str(element)
        case CharVal():
            prefix = "%s" if element.case_sensitive else "%i" if element.case_marked else ""
            return f'{prefix}"{element.text}"'
        case NumVal():
            return "%x" + ".".join(f"{value:02X}" for value in element.values)
        case NumRange():
            return f"%x{element.first:02X}-{element.last:02X}"
        case ProseVal():
            return f"<{element.text}>"


def _grouped(element: Element, *kinds: type[Element]) -> str:
    text = write_element(element)
    return f"( {text} )" if isinstance(element, kinds) else text


def _write_repeat(repetition: Repetition, repeated: str) -> str:
    least, greatest = repetition.minimum, repetition.maximum
    if greatest == least:
        # A single 0 before a name that begins with x would read as a C number: 0x0.
        return "*0" if least == 0 and repeated[0] in "xX" else str(least)
    return f"{least or ''}*{'' if greatest is None else greatest}"


def _with_comments(rule: Rule) -> str:
    above = "".join(f"; {comment.text}\n" for comment in rule.leading)
    behind = "".join(f"  ; {comment.text}" for comment in rule.trailing[:1])
    below = "".join(f"    ; {comment.text}\n" for comment in rule.trailing[1:])
    return f"{above}{write_rule(rule)}{behind}\n{below}"
