"""From Lark's tree of one rule to syntax nodes, reporting what RFC 5234 does not allow on the way.

The grammar in abnf.lark is wider than ABNF. Here is what narrows it: white space stands between the
elements of a concatenation and never behind a repeat count, ranges and counts are in order, and each
addition of the dialect is reported. A fault costs one report, not the rule: reading goes on with the most
likely meaning, so that one run shows every fault.
"""

from __future__ import annotations

from itertools import pairwise

from lark import Token, Tree

from specwire.generator.abnf_dialect import Dialect, Extension, report_extension
from specwire.generator.abnf_lines import Places, RuleText
from specwire.generator.abnf_values import ValueFault, check_range, read_counts, read_values
from specwire.generator.diagnostics import Diagnostics, Span
from specwire.generator.syntax import (
    Alternation,
    CharVal,
    Concatenation,
    Element,
    NumRange,
    NumVal,
    Option,
    ProseVal,
    Reference,
    Repetition,
    Rule,
)

DEEPEST_NESTING = 64
"""Groups inside groups beyond this are refused: later passes walk the tree by recursion."""

Node = Tree[Token]


class RuleReader:
    """Reads the tree of one rule; offsets in the tree count from the start of the rule's text."""

    def __init__(self, text: RuleText, *, places: Places, dialect: Dialect, diagnostics: Diagnostics) -> None:
        self._text = text
        self._places = places
        self._dialect = dialect
        self._diagnostics = diagnostics
        self._depth = 0

    def rule(self, tree: Node) -> Rule:
        """Return the rule that `tree` is."""
        name, defined_as, definition = tree.children
        assert isinstance(name, Tree) and isinstance(definition, Tree)
        reference = self._rulename(name)
        return Rule(
            name=reference.name,
            role=reference.role,
            definition=self._alternation(definition),
            incremental=defined_as == "=/",
            leading=self._text.leading,
            trailing=tuple(self._text.trailing),
            span=self._span(tree),
            name_span=reference.span,
        )

    def _alternation(self, tree: Node) -> Element:
        items: list[Element] = []
        for child in tree.children:
            if isinstance(child, Tree):
                items.append(self._concatenation(child))
            elif child == "|":
                self._report(Extension.BAR, self._span(child))
        return items[0] if len(items) == 1 else Alternation(tuple(items), self._span(tree))

    def _concatenation(self, tree: Node) -> Element:
        children = [child for child in tree.children if isinstance(child, Tree)]
        for before, after in pairwise(children):
            if before.meta.end_pos == after.meta.start_pos:
                message = "no white space between this element and the one before it"
                help = "separate the elements of a concatenation (RFC 5234 section 3.1)"
                self._diagnostics.error("E134", self._span(after), message, help)
        items = tuple(self._repetition(child) for child in children)
        return items[0] if len(items) == 1 else Concatenation(items, self._span(tree))

    def _repetition(self, tree: Node) -> Element:
        *repeat, child = tree.children
        assert isinstance(child, Tree)
        element = self._element(child)
        if not repeat:
            return element
        written = repeat[0]
        assert isinstance(written, Token)
        self._check_gap(written, child)
        least, greatest = self._counts(written)
        if child.data == "option" and isinstance(element, Option) and least == 0:
            element = self._repeated_option(element)
        return Repetition(least, greatest, element, self._span(tree))

    def _check_gap(self, repeat: Token, element: Node) -> None:
        if repeat.end_pos == element.meta.start_pos:
            return
        if "*" in repeat:
            self._report(Extension.LOOSE_REPEAT, self._span(repeat), str(repeat))
        else:
            message = f"white space between the repeat count {repeat} and its element"
            self._diagnostics.error(
                "E135", self._span(repeat), message, "write the count directly before the element: '4OCTET'"
            )

    def _repeated_option(self, option: Option) -> Element:
        self._report(Extension.REPEATED_OPTION, option.span)
        return option.element if self._dialect == "zeromq" else option

    def _counts(self, repeat: Token) -> tuple[int, int | None]:
        try:
            return read_counts(repeat)
        except ValueFault as fault:
            self._diagnostics.error(fault.code, self._span(repeat), fault.message, fault.help)
            return 0, None

    def _element(self, tree: Node) -> Element:
        match tree.data:
            case "rulename":
                return self._rulename(tree)
            case "group" | "option":
                return self._nested(tree)
            case "num_val":
                return self._num_val(tree)
            case "char_val":
                return self._char_val(tree)
            case "char_range":
                return self._char_range(tree)
            case "percent_name":
                return self._percent_name(tree)
            case _:
                return ProseVal(_only_token(tree)[1:-1], self._span(tree))

    def _rulename(self, tree: Node) -> Reference:
        *role, name = tree.children
        if role:
            self._report(Extension.ROLE, self._span(tree), f"{role[0]}{name}")
        return self._named(str(name), str(role[0])[0] if role else None, self._span(tree))

    def _percent_name(self, tree: Node) -> Reference:
        written = _only_token(tree)
        self._report(Extension.PERCENT_NAME, self._span(tree), written)
        return self._named(written[1:], None, self._span(tree))

    def _named(self, name: str, role: str | None, span: Span) -> Reference:
        if "_" in name:
            self._report(Extension.UNDERSCORE, span, name)
        return Reference(name, role, span)

    def _nested(self, tree: Node) -> Element:
        span = self._span(tree)
        if self._depth == DEEPEST_NESTING:
            message = f"groups are nested more than {DEEPEST_NESTING} deep"
            self._diagnostics.error("E138", span, message, "give the inner groups a rule of their own")
            return NumVal((0,), span)
        inner = tree.children[1]
        assert isinstance(inner, Tree)
        self._depth += 1
        element = self._alternation(inner)
        self._depth -= 1
        return Option(element, span) if tree.data == "option" else element

    def _char_val(self, tree: Node) -> CharVal:
        written = _only_token(tree)
        prefix, _, rest = written.partition('"')
        text = rest[:-1]
        self._check_printable(text, self._span(tree))
        return CharVal(text, prefix.lower() == "%s", self._span(tree))

    def _char_range(self, tree: Node) -> Element:
        span = self._span(tree)
        ends = [str(token).partition('"')[2][:-1] for token in tree.children]
        written = f'"{ends[0]}"-"{ends[1]}"'
        self._report(Extension.STRING_RANGE, span, written)
        if any(len(end) != 1 for end in ends):
            self._diagnostics.error(
                "E136",
                span,
                f"{written} is not a range of single characters",
                "write one character on each side",
            )
            return NumVal((0,), span)
        first, last = (ord(end) for end in ends)
        self._check_printable("".join(ends), span)
        try:
            check_range(first, last, written)
        except ValueFault as fault:
            self._diagnostics.error(fault.code, span, fault.message, fault.help)
        return NumRange(first, last, span)

    def _num_val(self, tree: Node) -> NumVal | NumRange:
        span = self._span(tree)
        token = tree.children[0]
        assert isinstance(token, Token)
        if extension := _VALUE_EXTENSIONS.get(token.type):
            self._report(extension, span, str(token))
        if token.type == "QUOTED_VAL":
            text = token[3:-1]
            self._check_printable(text, span)
            return NumVal(tuple(map(ord, text)), span)
        try:
            values, is_range = read_values(token)
        except ValueFault as fault:
            self._diagnostics.error(fault.code, span, fault.message, fault.help)
            return NumVal((0,), span)
        return NumRange(values[0], values[1], span) if is_range else NumVal(values, span)

    def _check_printable(self, text: str, span: Span) -> None:
        odd = next((c for c in text if not " " <= c <= "~"), None)
        if odd:
            message = f"U+{ord(odd):04X} in a string is not a printable ASCII character"
            help = "write its octets as a number value, such as %xC3.A9 (RFC 5234 section 2.3)"
            self._diagnostics.error("E137", span, message, help)

    def _span(self, node: Node | Token) -> Span:
        start, end = (
            (node.start_pos, node.end_pos)
            if isinstance(node, Token)
            else (node.meta.start_pos, node.meta.end_pos)
        )
        assert start is not None and end is not None
        return self._places.span(self._text.start + start, self._text.start + end)

    def _report(self, extension: Extension, span: Span, written: str = "") -> None:
        report_extension(
            extension, span, dialect=self._dialect, diagnostics=self._diagnostics, written=written
        )


_VALUE_EXTENSIONS = {
    "BARE_HEX": Extension.BARE_HEX,
    "C_HEX": Extension.C_HEX,
    "QUOTED_VAL": Extension.QUOTED_VALUE,
}


def _only_token(tree: Node) -> str:
    return str(tree.children[0])
