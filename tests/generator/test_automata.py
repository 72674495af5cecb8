"""Regular expressions over labels become minimal automata with the same language."""

from __future__ import annotations

import re
from collections import deque
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specwire.generator.passes.automata import (
    EMPTY,
    MAX_STATES,
    NOTHING,
    Automaton,
    Chain,
    Choice,
    Many,
    Regex,
    Symbol,
    TooLarge,
    alternatives_of,
    build_automaton,
    labels_of,
    map_labels,
)
from tests.examples import examples

LETTERS = "abc"
A, B, C = (Symbol(letter) for letter in LETTERS)


def as_pattern(regex: Regex) -> str:
    """Return the oracle's spelling: one character a label."""
    match regex:
        case Symbol(label):
            return label
        case Chain(items):
            return "".join(as_pattern(item) for item in items)
        case Choice(items):
            return f"(?:{'|'.join(as_pattern(item) for item in items)})" if items else "(?!)"
        case Many(body, minimum):
            return f"(?:{as_pattern(body)}){{{minimum},}}"


def expressions() -> st.SearchStrategy[Regex]:
    leaves: st.SearchStrategy[Regex] = st.sampled_from([A, B, C, A, B, C, EMPTY, NOTHING])
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3).map(lambda items: Chain(tuple(items))),
            st.lists(inner, max_size=3).map(lambda items: Choice(tuple(items))),
            st.builds(Many, inner, st.integers(0, 2)),
        ),
        max_leaves=8,
    )


@settings(max_examples=examples(120), deadline=None)
@given(regex=expressions(), words=st.lists(st.text(LETTERS, max_size=7), max_size=20))
def test_automaton_accepts_what_the_expression_matches(regex: Regex, words: list[str]) -> None:
    """Python's own regular expressions are the oracle."""
    automaton = build_automaton(regex)
    pattern = re.compile(as_pattern(regex))
    for word in [*words, *_words_of(automaton, limit=20)]:
        assert automaton.accepts(word) == bool(pattern.fullmatch(word)), word


@settings(max_examples=examples(80), deadline=None)
@given(regex=expressions())
def test_automaton_is_minimal(regex: Regex) -> None:
    """Every state is reached, leads to acceptance, and differs from every other."""
    automaton = build_automaton(regex)
    states = range(len(automaton.transitions))
    assert _reachable(automaton, {0} if states else set()) == set(states)
    assert all(_reachable(automaton, {state}) & automaton.accepting for state in states)
    assert all(_differ(automaton, one, other) for one, other in combinations(states, 2))


@settings(max_examples=examples(40), deadline=None)
@given(regex=expressions())
def test_equal_languages_give_equal_automata(regex: Regex) -> None:
    """Two spellings of a language give one table where they name the labels in the same order."""
    spelled_twice = Choice((regex, Chain((regex, EMPTY)), NOTHING))
    assert build_automaton(spelled_twice) == build_automaton(regex)


def test_states_are_numbered_breadth_first() -> None:
    automaton = build_automaton(Choice((Chain((A, A, A)), Chain((B, B)))))
    rows: tuple[dict[str, int], ...] = ({"a": 1, "b": 2}, {"a": 3}, {"b": 4}, {"a": 4}, {})
    assert automaton == Automaton(("a", "b"), rows, frozenset({4}))


def test_nothing_has_no_state() -> None:
    automaton = build_automaton(Chain((A, NOTHING)))
    assert automaton == Automaton(("a",), (), frozenset())
    assert not automaton.accepts([])


def test_empty_word_has_one_state() -> None:
    assert build_automaton(EMPTY) == Automaton((), ({},), frozenset({0}))


def test_too_many_states_are_refused() -> None:
    """The n-th label from the end needs 2^n states."""
    either = Choice((A, B))
    with pytest.raises(TooLarge):
        build_automaton(Chain((Many(either), A, *(either for _ in range(MAX_STATES.bit_length())))))


def test_too_many_steps_are_refused() -> None:
    """Few states can have many ways between them: 700 options in a row, repeated."""
    options = (Choice((Symbol(f"{number}"), EMPTY)) for number in range(700))
    with pytest.raises(TooLarge):
        build_automaton(Many(Chain(tuple(options))))


def test_labels_keep_the_order_in_which_they_are_named() -> None:
    assert labels_of(Chain((Many(B), Choice((C, B, A))))) == ("b", "c", "a")


def test_labels_are_replaced() -> None:
    regex = Chain((A, Many(Choice((B, C)), 1)))
    assert map_labels(regex, {"b": NOTHING, "c": A}) == Chain((A, Many(Choice((NOTHING, A)), 1)))


def test_alternatives_of_nested_choices_are_one_list() -> None:
    assert alternatives_of(Choice((A, Choice((B, C))))) == (A, B, C)
    assert alternatives_of(Many(A)) == (Many(A),)


def _words_of(automaton: Automaton, *, limit: int) -> list[str]:
    """Return short words of the language, so that the oracle also sees many that match."""
    found: list[str] = []
    waiting = deque([("", 0)]) if automaton.transitions else deque[tuple[str, int]]()
    for _ in range(200):
        if not waiting or len(found) == limit:
            break
        word, state = waiting.popleft()
        if state in automaton.accepting:
            found.append(word)
        waiting.extend((word + label, target) for label, target in automaton.transitions[state].items())
    return found


def _reachable(automaton: Automaton, states: set[int]) -> set[int]:
    found = set(states)
    waiting = list(found)
    while waiting:
        for target in automaton.transitions[waiting.pop()].values():
            if target not in found:
                found.add(target)
                waiting.append(target)
    return found


def _differ(automaton: Automaton, one: int, other: int) -> bool:
    """Return whether some word is accepted from one state and not from the other."""
    seen: set[tuple[int | None, int | None]] = set()
    waiting: list[tuple[int | None, int | None]] = [(one, other)]
    while waiting:
        pair = waiting.pop()
        if (pair[0] in automaton.accepting) != (pair[1] in automaton.accepting):
            return True
        if pair in seen:
            continue
        seen.add(pair)
        rows = [automaton.transitions[state] if state is not None else {} for state in pair]
        waiting.extend((rows[0].get(label), rows[1].get(label)) for label in {*rows[0], *rows[1]})
    return False
