"""Building blocks of Java source: literals, comments, and nested calls wrapped to the line length."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

LINE_LENGTH = 110
RESERVED = frozenset((
    "abstract", "assert", "boolean", "break", "byte", "case", "catch", "char", "class", "const",
    "continue", "default", "do", "double", "else", "enum", "extends", "false", "final", "finally", "float",
    "for", "goto", "if", "implements", "import", "instanceof", "int", "interface", "long", "native", "new",
    "null", "package", "private", "protected", "public", "return", "short", "static", "strictfp", "super",
    "switch", "synchronized", "this", "throw", "throws", "transient", "true", "try", "void", "volatile",
    "while", "_",
))  # fmt: skip
"""Reserved words, which no Java name may be."""

INHERITED = frozenset(
    ("clone", "finalize", "getClass", "hashCode", "notify", "notifyAll", "toString", "wait")
)
"""Methods that every Java class has."""


@dataclass(frozen=True, slots=True)
class Call:
    """Expression with arguments, such as ``new Text(Span.rest())``; `tail` follows its parenthesis."""

    head: str
    arguments: tuple[Call | str, ...] = ()
    tail: str = ""

    def __str__(self) -> str:
        return f"{self.head}({', '.join(map(str, self.arguments))}){self.tail}"

    def followed(self, tail: str) -> Call:
        """Return the call followed by another on its result, such as ``.terminated()``."""
        return Call(self.head, self.arguments, self.tail + tail)

    def lines(self, indent: int, before: str = "", after: str = "") -> list[str]:
        """Return the source lines; arguments that do not fit on the line get separate lines."""
        pad = "    " * indent
        whole = f"{pad}{before}{self}{after}"
        if len(whole) <= LINE_LENGTH or not self.arguments:
            return [whole]
        found = [f"{pad}{before}{self.head}("]
        *others, last = self.arguments
        for argument in others:
            found += _argument(argument, indent + 2, ",")
        return found + _argument(last, indent + 2, f"){self.tail}{after}")


def _argument(argument: Call | str, indent: int, after: str) -> list[str]:
    if isinstance(argument, Call):
        return argument.lines(indent, after=after)
    return [f"{'    ' * indent}{argument}{after}"]


def java_string(text: str) -> str:
    """Return a string literal, in ASCII."""
    return json.dumps(text)


def java_list(items: Iterable[Call | str]) -> Call:
    """Return an unmodifiable list of expressions."""
    return Call("List.of", tuple(items))


def comment(text: str) -> list[str]:
    """Return a text as lines of a Java comment, without sequences that end it or are escapes."""
    safe = text.replace("\\", "&#92;").replace("*/", "*&#47;").replace("<", "&lt;").replace("@", "&#64;")
    return safe.splitlines()


def package_name(protocol: str) -> str:
    """Return a protocol's name as part of a Java package name; a reserved word gets ``_`` appended."""
    return f"{protocol}_" if protocol in RESERVED else protocol


def method_name(class_name: str) -> str:
    """Return the name of a method for a message class."""
    name = class_name[0].lower() + class_name[1:]
    return f"{name}_" if name in RESERVED | INHERITED else name


def imported(known: Iterable[str], sources: Sequence[str]) -> list[str]:
    """Return the fully qualified classes that the sources use outside literals, sorted."""
    text = re.sub(r'"(?:[^"\\]|\\.)*"', '""', "\n".join(sources))
    words = set(re.findall(r"(?<![\w.])\w+", text))
    return sorted(name for name in known if name.rpartition(".")[2] in words)
