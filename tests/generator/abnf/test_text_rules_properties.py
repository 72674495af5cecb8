"""What holds for every rule without recursion: Python's own verdict, and the longest prefix by another road."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from specwire.generator.abnf.syntax import (
    Alternation,
    CharVal,
    Concatenation,
    Element,
    NumRange,
    NumVal,
    Option,
    Repetition,
    write_element,
)
from tests.generator.abnf.test_text_rules import NOWHERE, rule_of

TEXTS = st.lists(st.text("aAbBc", max_size=9), min_size=1, max_size=8)
LEAVES = st.one_of(
    st.builds(CharVal, st.text("aBc", max_size=3), st.booleans(), st.just(NOWHERE)),
    st.sampled_from([(0x61,), (0x61, 0x62), (0x42,)]).map(lambda values: NumVal(values, NOWHERE)),
    st.sampled_from([(0x61, 0x62), (0x41, 0x62)]).map(lambda ends: NumRange(*ends, NOWHERE)),
)


def branches(inner: st.SearchStrategy[Element]) -> st.SearchStrategy[Element]:
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    counts = st.tuples(st.integers(0, 3), st.none() | st.integers(0, 3))
    return st.one_of(
        several.map(lambda items: Alternation(items, NOWHERE)),
        several.map(lambda items: Concatenation(items, NOWHERE)),
        inner.map(lambda element: Option(element, NOWHERE)),
        st.tuples(counts, inner).map(repeated),
    )


def repeated(parts: tuple[tuple[int, int | None], Element]) -> Repetition:
    (low, more), element = parts
    return Repetition(low, None if more is None else low + more, element, NOWHERE)


ELEMENTS = st.recursive(LEAVES, branches, max_leaves=8)


def pattern(element: Element) -> str:
    """Return the element as Python's regular expressions write it."""
    match element:
        case CharVal(text=text, case_sensitive=sensitive):
            return text if sensitive else "".join(f"[{c.lower()}{c.upper()}]" for c in text)
        case NumVal(values=values):
            return "".join(map(chr, values))
        case NumRange(first=first, last=last):
            return f"[{chr(first)}-{chr(last)}]"
        case Concatenation(items=items):
            return "".join(f"(?:{pattern(item)})" for item in items)
        case Alternation(items=items):
            return "|".join(f"(?:{pattern(item)})" for item in items)
        case Option(element=inner):
            return f"(?:{pattern(inner)})?"
        case Repetition(minimum=low, maximum=high, element=inner):
            return f"(?:{pattern(inner)}){{{low},{'' if high is None else high}}}"
    raise AssertionError(element)


class Naive:
    """Where an element can end in a text, and whether some way through it wants more than the text has."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.starved = False

    def ends(self, element: Element, start: int) -> set[int]:
        match element:
            case CharVal() | NumVal() | NumRange():
                return self._characters(element, start)
            case Concatenation(items=items):
                places = {start}
                for item in items:
                    places = self._all(item, places)
                return places
            case Alternation(items=items):
                return set().union(*(self.ends(item, start) for item in items))
            case Option(element=inner):
                return {start} | self.ends(inner, start)
            case Repetition(minimum=low, maximum=high, element=inner):
                return self._repeats(inner, start, low, high)
        raise AssertionError(element)

    def _characters(self, element: Element, start: int) -> set[int]:
        classes = re.findall(r"\[[^]]+\]|.", pattern(element))
        for place, one in enumerate(classes, start):
            if place == len(self.text):
                self.starved = True
                return set()
            if not re.fullmatch(one, self.text[place]):
                return set()
        return {start + len(classes)}

    def _all(self, element: Element, places: set[int]) -> set[int]:
        return set().union(*(self.ends(element, place) for place in places))

    def _repeats(self, inner: Element, start: int, low: int, high: int | None) -> set[int]:
        places = {start}
        found = {start} if low == 0 else set()
        # Beyond the length of the text, repeats add nothing but empty ones.
        for count in range(1, (low + len(self.text) + 1 if high is None else high) + 1):
            places = self._all(inner, places)
            found |= places if count >= low else set()
        return found


def can_go_on(element: Element, text: str) -> bool:
    naive = Naive(text)
    return len(text) in naive.ends(element, 0) or naive.starved


@given(ELEMENTS, TEXTS)
def test_the_verdict_is_that_of_regular_expressions(element: Element, texts: list[str]) -> None:
    rule = rule_of(f"r = {write_element(element)}\n")
    compiled = re.compile(pattern(element))
    for text in texts:
        found = rule.match(text)
        assert found.matches == bool(compiled.fullmatch(text)), text
        assert found.may_end == bool(compiled.fullmatch(text[: found.offset])), text


@given(ELEMENTS, TEXTS)
def test_the_offset_is_the_end_of_the_longest_prefix_that_can_go_on(
    element: Element, texts: list[str]
) -> None:
    rule = rule_of(f"r = {write_element(element)}\n")
    for text in texts:
        offset = rule.match(text).offset
        assert can_go_on(element, text[:offset]), text
        assert offset == len(text) or not can_go_on(element, text[: offset + 1]), text


@given(ELEMENTS)
def test_every_way_on_that_is_expected_is_one(element: Element) -> None:
    """Follow what is expected, character by character: each step gets further, and nothing else does."""
    rule = rule_of(f"r = {write_element(element)}\n")
    text = ""
    while len(text) < 6:
        onward = [c for c in "aAbBc" if rule.match(text + c).offset > len(text)]
        assert bool(onward) == bool(rule.match(text).expected)
        assert onward or rule.match(text).may_end, "a text that cannot go on is whole"
        if not onward:
            return
        text += onward[-1]
