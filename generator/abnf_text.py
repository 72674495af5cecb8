"""Writer of syntax nodes as ABNF text that parses to the same nodes.

The output is RFC 5234 with RFC 7405, except for roles in front of names and ``_`` in names.
"""

from __future__ import annotations

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
    Rulelist,
)


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
