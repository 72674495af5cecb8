"""Grammars of every kind of layout, drawn at random: rules as specifications of the family write them."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

WORDS = (
    "alpha", "class", "frames", "at", "self", "encode", "octets", "items", "name", "value", "type", "strict", "key",
)  # fmt: skip
DEEPEST = 2


class Grammar:
    """Rules so far; every value is a rule of its own, so that no name is taken twice."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.rules: list[str] = []
        self.number = 0

    def maybe(self) -> bool:
        return self.draw(st.booleans())

    def rule(self, definition: str, comment: str = "") -> str:
        """Add a rule under a new name and return the name."""
        self.number += 1
        name = f"{self.draw(st.sampled_from(WORDS))}-{self.number}"
        self.rules.append(f"{name} = {definition}" + (f" ; {comment}" if comment else ""))
        return name

    def prefix(self, what: str) -> str:
        octets = self.draw(st.sampled_from((1, 2, 3, 4, 8)))
        return self.rule(f"{octets}OCTET", f"{what}, an integer in network order")

    # Values

    def integer(self) -> str:
        return self.rule(f"{self.draw(st.integers(1, 8))}OCTET", "an integer in network order")

    def enumeration(self) -> str:
        names = [self.rule(f"%x{number:02x}") for number in (1, 2, 9)]
        return self.rule(" / ".join(names))

    def fixed(self) -> str:
        return self.rule(f"{self.draw(st.sampled_from((5, 16, 32)))}OCTET", "opaque octets")

    def string(self) -> str:
        characters = self.draw(st.sampled_from(("VCHAR", '( ALPHA / DIGIT / "." )')))
        return self.rule(f"{self.prefix('length of the text')} *{characters}")

    def octets(self) -> str:
        return self.rule(f"{self.prefix('length of the octets')} *OCTET")

    def constant(self) -> str:
        return self.rule(self.draw(st.sampled_from(('"GET"', "%x0D.0A", "3%x00"))))

    def listed(self, depth: int) -> str:
        return self.rule(f"{self.prefix('number of entries')} *{self.value(depth + 1, element=True)}")

    def dictionary(self) -> str:
        pair = self.rule(f"{self.string()} {self.string()}")
        return self.rule(f"{self.prefix('number of pairs')} *{pair}")

    def record(self, depth: int) -> str:
        return self.rule(f"{self.integer()} {self.value(depth + 1)} {self.string()}")

    def union(self, depth: int) -> str:
        # Of constants alone it would be a choice of words, which a frame does not hold among other values.
        options = [self.rule(f"%x{number:02x} {self.value(depth + 1, element=True)}") for number in (65, 66)]
        return self.rule(" / ".join(options))

    def value(self, depth: int = 0, *, element: bool = False) -> str:
        """A rule for a value that says itself where it ends."""
        makers: list[Callable[[], str]] = [self.integer, self.fixed, self.string, self.octets]
        makers += [] if element else [self.enumeration, self.constant]
        if depth < DEEPEST:
            makers += [lambda: self.listed(depth), self.dictionary]
            makers += [lambda: self.record(depth), lambda: self.union(depth)]
        maker = self.draw(st.sampled_from(makers))
        return maker()

    def tail(self) -> str:
        """What goes on to the end of the frame, or may be left out there."""
        match self.draw(st.integers(0, 5)):
            case 0:
                return self.rule("*OCTET")
            case 1:
                return self.rule("*VCHAR")
            case 2:
                return f"[ {self.integer()} ]"
            case 3:
                return f"[ {self.integer()} [ {self.string()} ] ]"
            case 4:
                return f"*{self.record(1)}"
        return ""

    def message(self, number: int) -> str:
        """A message of one frame, or with frames behind it."""
        values = " ".join(self.value() for _ in range(self.draw(st.integers(0, 3))))
        head = self.rule(f"%xAA.A1 %x{number:02x} {values} {self.tail()}".rstrip())
        match self.draw(st.integers(0, 3)):
            case 0:
                return self.rule(f"{head} {self.rule('*OCTET', 'a ZeroMQ frame')}")
            case 1:
                return self.rule(f"{head} *{self.rule('*OCTET', 'a ZeroMQ frame')}")
        return head


@st.composite
def grammars(draw: st.DrawFn) -> str:
    """The text of a grammar with two messages."""
    grammar = Grammar(draw)
    messages = [grammar.message(number) for number in (1, 2)]
    return "\n".join([f"protocol = {' / '.join(messages)}", *reversed(grammar.rules), ""])
