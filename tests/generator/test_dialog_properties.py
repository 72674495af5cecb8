"""Random dialog rules, written as ABNF and read back: both readings agree with oracles of their own."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from specwire.generated.dialog import Dialog as Tables
from specwire.generated.dialog import Phase
from specwire.generated.session import DialogSession
from specwire.generator.abnf.parser import parse_grammar
from specwire.generator.diagnostics import Diagnostics, Source
from specwire.generator.ir.dialogs import Dialog, DialogSettings
from specwire.generator.passes.dialog import build_dialogs
from specwire.generator.passes.resolve import resolve_names
from tests.examples import examples

LABELS = {"C:ASK": "a", "C:SAY": "b", "S:TELL": "c", "S:HEAR": "d"}
"""Each message with its sender, and the character that stands for it in the oracle's patterns."""
CLASSES = {"ASK": "Ask", "SAY": "Say", "TELL": "Tell", "HEAR": "Hear"}
MESSAGES = "".join(f"{name} = %x0{number}\n" for number, name in enumerate(CLASSES, start=1))


@dataclass(frozen=True)
class Written:
    """A rule's right-hand side twice: as ABNF, and as the pattern that Python's `re` reads."""

    abnf: str
    pattern: str


def _chain(items: list[Written]) -> Written:
    return Written(" ".join(f"( {i.abnf} )" for i in items), "".join(f"(?:{i.pattern})" for i in items))


def _choice(items: list[Written]) -> Written:
    return Written(" / ".join(f"( {i.abnf} )" for i in items), "|".join(f"(?:{i.pattern})" for i in items))


def _option(item: Written) -> Written:
    return Written(f"[ {item.abnf} ]", f"(?:{item.pattern})?")


def _repeat(item: Written, bounds: tuple[int, int | None]) -> Written:
    low, high = bounds
    written = f"{low}*{'' if high is None else high}( {item.abnf} )"
    return Written(written, f"(?:{item.pattern}){{{low},{'' if high is None else high}}}")


BOUNDS = st.sampled_from([(0, None), (1, None), (2, None), (0, 2), (1, 3), (2, 2)])


def rules() -> st.SearchStrategy[Written]:
    leaves = st.sampled_from([Written(label, letter) for label, letter in LABELS.items()])
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, min_size=1, max_size=3).map(_chain),
            st.lists(inner, min_size=2, max_size=3).map(_choice),
            inner.map(_option),
            st.builds(_repeat, inner, BOUNDS),
        ),
        max_leaves=7,
    )


def read(rule: str, *, repeat: bool = False) -> tuple[Dialog | None, set[str]]:
    """Return the dialog of a rule, None where it is refused as too large; and the codes of what was found."""
    diagnostics = Diagnostics()
    source = Source("input.abnf", f"dialog = {rule}\n{MESSAGES}")
    rulelist = parse_grammar(source, dialect="zeromq", diagnostics=diagnostics)
    grammar = resolve_names([rulelist], diagnostics=diagnostics)
    found = build_dialogs(
        grammar, [DialogSettings("dialog", "dialog", ("C", "S"), repeat=repeat)], CLASSES, diagnostics
    )
    assert {fault.code for fault in diagnostics.errors} <= {"E305"}, rule
    return found[0] if found else None, {fault.code for fault in diagnostics}


def tables(dialog: Dialog) -> Tables:
    """Return what a generated machine has of a dialog."""
    reading = dialog.concurrent
    replies: dict[str, tuple[tuple[str, str | None], ...]] = {}
    for reply in reading.replies:
        replies[reply.label] = (*replies.get(reply.label, ()), (reply.place, reply.then))
    return Tables(
        name=dialog.name,
        rule=dialog.rule,
        roles=dialog.roles,
        strict={state.name: {t.label: t.target for t in state.transitions} for state in dialog.strict},
        phases={
            phase.name: Phase(
                {move.label: move.target for move in phase.moves},
                {start.label: (start.phase, start.place) for start in phase.starts},
            )
            for phase in reading.phases
        },
        replies=replies,
    )


def label_of(letter: str) -> str:
    written = next(label for label, found in LABELS.items() if found == letter)
    sender, _, name = written.partition(":")
    return f"{sender}:{CLASSES[name]}"


def accepts(dialog: Dialog, word: str) -> bool:
    """Whether the strict table, walked by hand, ends the word in a state where the dialog may end."""
    states = {state.name: state for state in dialog.strict}
    state = dialog.strict[0]
    for letter in word:
        targets = {move.label: move.target for move in state.transitions}
        if label_of(letter) not in targets:
            return False
        state = states[targets[label_of(letter)]]
    return state.accepting


words = st.lists(st.text("".join(LABELS.values()), max_size=8), max_size=20)


@settings(max_examples=examples(120), deadline=None)
@given(rule=rules(), words=words)
def test_strict_reading_is_the_rule_to_the_letter(rule: Written, words: list[str]) -> None:
    """Python's own regular expressions are the oracle, over the words drawn and over some that match."""
    dialog, _ = read(rule.abnf)
    if dialog is None:
        return
    pattern = re.compile(rule.pattern)
    for word in [*words, *_words_of(dialog, limit=30)]:
        assert accepts(dialog, word) == bool(pattern.fullmatch(word)), (rule.abnf, word)


@settings(max_examples=examples(120), deadline=None)
@given(rule=rules(), repeat=st.booleans())
def test_concurrent_reading_accepts_all_that_the_strict_one_does(rule: Written, repeat: bool) -> None:
    """Peers that do wait for each other are in order, unless a warning says that a message can mean two things."""
    dialog, found = read(rule.abnf, repeat=repeat)
    if dialog is None or "W305" in found:
        return
    for word in _words_of(dialog, limit=30):
        session = DialogSession(tables(dialog), "C", "concurrent")
        for letter in word:
            sender, _, name = label_of(letter).partition(":")
            message = type(name, (), {})()
            assert session.observe(sender, message) is None, (rule.abnf, word)


def _words_of(dialog: Dialog, *, limit: int) -> Iterable[str]:
    """Return short words that the strict table accepts."""
    letters = {label_of(letter): letter for letter in LABELS.values()}
    states = {state.name: state for state in dialog.strict}
    found: list[str] = []
    waiting = [("", dialog.strict[0])] if dialog.strict else []
    for word, state in waiting:  # grows while we walk it: breadth-first
        if state.accepting:
            found.append(word)
        if len(found) >= limit or len(waiting) > 300:
            break
        waiting.extend((word + letters[move.label], states[move.target]) for move in state.transitions)
    return found


@settings(max_examples=examples(120), deadline=None)
@given(alternatives=st.lists(rules(), min_size=1, max_size=3), data=st.data())
def test_exchanges_may_overlap_in_any_way(alternatives: list[Written], data: st.DataObject) -> None:
    """Words of the alternatives of a repetition are in order however they are shuffled into each other."""
    dialog, found = read(f"*( {_choice(alternatives).abnf} )")
    if dialog is None or "W305" in found:
        return
    alone = [list(_words_of(one, limit=6)) for rule in alternatives if (one := read(rule.abnf)[0])]
    chosen = data.draw(st.lists(st.sampled_from([word for words in alone for word in words]), max_size=4))
    waiting = [list(word) for word in chosen if word]
    session = DialogSession(tables(dialog), "C", "concurrent")
    trace = ""
    while waiting:
        word = data.draw(st.sampled_from(waiting))
        trace += word.pop(0)
        waiting = [left for left in waiting if left]
        sender, _, name = label_of(trace[-1]).partition(":")
        assert session.observe(sender, type(name, (), {})()) is None, (dialog.rule, trace, chosen)
