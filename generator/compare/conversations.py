"""Changes in dialogs, in both readings: which role may send which message, and when.

The names of states differ between editions, so automata are compared by walking through both at
once from their starts, along every label that both allow. A step that only one of them allows at
such a place was added or removed. Labels use the new edition's names of messages. A place is
described by the shortest path to it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from specwire.generator.compare.comparison import (
    NAME_ONLY,
    Change,
    Readings,
    change,
    depends,
    each,
    yes,
)
from specwire.generator.compare.context import Context
from specwire.generator.compare.matching import pair_up
from specwire.generator.ir.dialogs import Dialog

_ALLOWED = yes("a peer that continues as before breaks no rule of the other edition")
_REFUSED = depends(
    "the octets are read; correct if the peer does not take this step, which the reader does not expect"
)
_KEY = depends("the octets are read; replies match their requests if both editions use the same values")
_CAME: Readings = (_REFUSED, _ALLOWED)
_WENT: Readings = (_ALLOWED, _REFUSED)
_BOTH: Readings = (_REFUSED, _REFUSED)
MOST_PLACES = 3
"""Maximum number of places of one step that are named; the others are counted."""

Steps = Mapping[str, str]
"""The steps from a place: label to the next place."""


def dialog_changes(context: Context) -> Iterator[Change]:
    """Yield the changes of every dialog: labels, steps of both readings, replies, keys."""

    def same_name(left: Dialog, right: Dialog) -> float:
        return float(left.name == right.name)

    def same_roles(left: Dialog, right: Dialog) -> float:
        return float(left.roles == right.roles)

    for pair in pair_up(context.old.dialogs, context.new.dialogs, same_name, same_roles):
        if pair.old and pair.new:
            yield from _changed(_Named(pair.old, context.class_of), _Named(pair.new, str), pair.old.name)
            continue
        name, texts = pair.either.name, each(_all_labels, pair.old, pair.new)
        yield change(f"dialog {name}", "dialog", name, texts, _CAME if pair.new else _WENT)


def _all_labels(dialog: Dialog) -> str:
    return ", ".join(dialog.labels)


@dataclass(frozen=True, slots=True)
class _Named:
    """A dialog whose labels have the message classes of the new edition."""

    dialog: Dialog
    renamed: Callable[[str], str]

    def label(self, label: str) -> str:
        role, colon, name = label.partition(":")
        return f"{role}{colon}{self.renamed(name)}"

    def labels(self) -> list[str]:
        return [self.label(label) for label in self.dialog.labels]

    def strict(self) -> dict[str, Steps]:
        """The states, beginning with the start; the end is a step to a separate place."""
        states: dict[str, Steps] = {
            state.name: {self.label(t.label): t.target for t in state.transitions}
            | ({_END: _END} if state.accepting else {})
            for state in self.dialog.strict
        }
        return states | {_END: {}}

    def concurrent(self) -> dict[str, Steps]:
        """The phases, beginning with the start."""
        return {
            phase.name: {self.label(t.label): t.target for t in phase.moves}
            | {self._start(start.label, start.place is not None): start.phase for start in phase.starts}
            for phase in self.dialog.concurrent.phases
        }

    def _start(self, label: str, answered: bool) -> str:
        return self.label(label) + (_ANSWERED if answered else "")

    def replies(self) -> dict[str, str]:
        """The requests of each reply, by its label, and whether more replies may come."""
        waiting: dict[str, list[str]] = {}
        for phase in self.dialog.concurrent.phases:
            for start in phase.starts:
                if start.place is not None:
                    labels = waiting.setdefault(start.place, [])
                    labels += [self.label(start.label)] * (self.label(start.label) not in labels)
        found: dict[str, list[str]] = {}
        for reply in self.dialog.concurrent.replies:
            more = "" if reply.then is None else ", more may come"
            requests = " or ".join(waiting.get(reply.place, [])) or "a reply before it"
            found.setdefault(self.label(reply.label), []).append(f"answers {requests}{more}")
        return {label: "; ".join(sorted(set(texts))) for label, texts in found.items()}

    def pairing(self) -> str:
        """How replies are matched to their requests."""
        dialog = self.dialog
        texts = [f"by {', '.join(dialog.key)}"] if dialog.key else ["in their order"]
        texts += [f"none where {name} is {value}" for name, value in dialog.keyless]
        texts += [f"no reply where {name} has 0x{bits:02x}" for name, bits in dialog.unanswered]
        return "; ".join(texts)


_END = "the end"
_ANSWERED = ", to be answered"


def _changed(old: _Named, new: _Named, name: str) -> Iterator[Change]:
    group = f"dialog {name}"
    if name != new.dialog.name:
        names = name, new.dialog.name
        yield change(group, "dialog", "name", names, (NAME_ONLY, NAME_ONLY), kind="renamed")
    before, after = old.labels(), new.labels()
    for label in dict.fromkeys([*before, *after]):
        if (label in before) is not (label in after):
            texts, readings = ((label, None), _WENT) if label in before else ((None, label), _CAME)
            yield change(group, "dialog", f"label {label}", texts, readings)
    shared = [label for label in before if label in after]
    yield from _steps(group, "strict", old.strict(), new.strict(), shared)
    yield from _steps(group, "concurrent", old.concurrent(), new.concurrent(), shared)
    for label in shared:
        replies = old.replies().get(label), new.replies().get(label)
        if replies[0] != replies[1]:
            yield change(group, "dialog", f"reply {label}", replies, _BOTH, kind="meaning")
    keys = old.pairing(), new.pairing()
    if keys[0] != keys[1]:
        yield change(group, "dialog", "pairing of replies", keys, (_KEY, _KEY), kind="key")


def _steps(
    group: str, reading: str, old: Mapping[str, Steps], new: Mapping[str, Steps], shared: Collection[str]
) -> Iterator[Change]:
    """Yield the steps that were added or removed, each once with its places.

    Labels that only one edition has are listed separately.
    """
    found: dict[tuple[str, bool], list[str]] = {}
    for way, before, after in _places(old, new):
        for label in [*before, *after]:
            known = label == _END or label.removesuffix(_ANSWERED) in shared
            if known and (label in before) is not (label in after):
                found.setdefault((label, label in before), []).append(way)
    for (label, went), ways in found.items():
        more = f" and in {len(ways) - MOST_PLACES} more places" if len(ways) > MOST_PLACES else ""
        where = f"{label}, {'; '.join(ways[:MOST_PLACES])}{more}"
        texts, readings = ((where, None), _WENT) if went else ((None, where), _CAME)
        yield change(group, "dialog", f"{reading}: {label}", texts, readings)


def _places(old: Mapping[str, Steps], new: Mapping[str, Steps]) -> Iterator[tuple[str, Steps, Steps]]:
    """Yield every pair of places to which the same labels lead, breadth first, with the path."""
    start = next(iter(old)), next(iter(new))
    ways: dict[tuple[str, str], tuple[str, ...]] = {start: ()}
    waiting = deque([start])
    while waiting:
        here = waiting.popleft()
        before, after = old[here[0]], new[here[1]]
        yield _way(ways[here]), before, after
        for label in before:
            if label in after:
                there = before[label], after[label]
                if there not in ways:
                    ways[there] = (*ways[here], label.removesuffix(_ANSWERED))
                    waiting.append(there)


def _way(labels: tuple[str, ...]) -> str:
    return f"after {' '.join(labels)}" if labels else "at the start"
