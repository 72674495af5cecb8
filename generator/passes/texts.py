"""Text: elements of printable characters, up to the end of a run or of fixed length.

A NUL that ends a text is not part of its content, and neither is the padding of a text of fixed
length. Character classes do not affect the layout; they become a pattern that ``strict`` decoding
checks.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from specwire.generator import ir
from specwire.generator.abnf.syntax import Concatenation, Element, Repetition, Rule
from specwire.generator.passes import declared
from specwire.generator.passes.layouts import REST, ValueLayout
from specwire.generator.passes.octets import MAX_PATTERN
from specwire.generator.profile.tables import TypeHint

if TYPE_CHECKING:
    from specwire.generator.passes.types import TypeReader


def read_text(reader: TypeReader, element: Element, rule: Rule | None, hint: TypeHint) -> ValueLayout | None:
    """Return the type of an element that is text, of fixed length or up to the end.

    None for other elements.
    """
    padded = _padded(reader, element, rule, hint)
    if padded is not None:
        return ValueLayout(padded)
    content = element
    terminated = isinstance(element, Concatenation) and reader.octets.constant(element.items[-1]) == b"\0"
    if isinstance(element, Concatenation) and terminated:
        content = Concatenation(element.items[:-1], element.span)
    if not reader.octets.is_textual(content):
        return None
    extent = None if terminated else reader.octets.extent(content)
    length = ir.Length("fixed", extent) if extent else REST
    pattern = reader.octets.pattern(content)
    if pattern is None and not declared.says_type(hint):
        reader.diagnostics.warning(
            "W413",
            content.span,
            "the characters of this text are not checked: its pattern would have more than "
            f"{MAX_PATTERN:,} characters",
            "write it with character classes and '*', or declare its `type` as \"text\"",
        )
    return ValueLayout(ir.TextType(length, pattern, terminated))


def _padded(reader: TypeReader, element: Element, rule: Rule | None, hint: TypeHint) -> ir.TextType | None:
    """Return the type of padded text: its class contains NUL, or a comment mentions padding."""
    if not isinstance(element, Repetition) or element.minimum != element.maximum or element.minimum < 2:
        return None
    if hint.type not in ("text", None):
        return None
    if not reader.octets.is_class(element.element) or reader.octets.count(element.element) == 1:
        return None
    class_ = reader.octets.octet_class(element.element)
    says = rule is not None and re.search(r"\bpadded\b", reader.comment(rule), re.IGNORECASE)
    if hint.padding is not None:
        fill = hint.padding
    elif 0 in class_ and len(class_) > 1:
        fill = 0
        if rule is not None and not says:
            reader.diagnostics.warning(
                "W407",
                rule.name_span,
                f"the NUL octets at the end of '{rule}' are read as padding",
                f"declare it with padding = 0 under [types.{rule.name}] in {reader.profile.source.path}",
            )
    elif says:
        fill = 0x20 if 0x20 in class_ else 0
    else:
        return None
    shorter = Repetition(0, element.maximum, element.element, element.span)
    length = ir.Length("fixed", element.minimum)
    return ir.TextType(length, reader.octets.pattern(shorter), padding=f"{fill:02x}")
