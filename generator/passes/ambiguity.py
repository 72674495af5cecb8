"""Detection of messages that are ambiguous in the concurrent reading of a dialog.

There are three kinds:

- A reply may also open or close the dialog, or start an exchange, while a request waits for the reply.
- A message may answer requests of two kinds that continue differently. Only a key shows which one it answers.
- An exchange may be complete and still continue: after ``S:tell`` in ``C:ask S:tell [ S:more ]``
  its token remains, and it is open whether the next ``S:more`` belongs to it.

The rule as written resolves these by later messages, which a reader of a running dialog does not have yet.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from specwire.generator.ir.dialogs import Phase, Reply


def ambiguous_replies(
    phases: Sequence[Phase],
    replies: Sequence[Reply],
    *,
    owners: Mapping[str, int],
    lingering: Collection[str],
) -> Iterator[str]:
    """Yield each reply that may take a token although it has another meaning.

    Args:
        phases: the lifecycle.
        replies: the replies, with the places from which they take tokens.
        owners: for each place the number of its exchange.
        lingering: the places whose exchange is complete but allows further replies.
    """
    by_label: dict[str, list[Reply]] = {}
    for reply in replies:
        by_label.setdefault(reply.label, []).append(reply)
    holding = _holding(owners, phases, replies)
    for label, takes in by_label.items():
        leading = {phase.name for phase in phases if _leads(phase, label)}
        if _compete(takes, owners, lingering) or any(leading & holding[reply.place] for reply in takes):
            yield label


def _compete(takes: Sequence[Reply], owners: Mapping[str, int], lingering: Collection[str]) -> bool:
    """Whether it matters which of several tokens a reply takes, because one of them continues."""
    onward = [reply for reply in takes if reply.then not in (None, reply.place)]
    if len(takes) < 2 or not onward:
        return False
    places = {reply.place for reply in takes}
    if len({owners[place] for place in places}) > 1 or any(place in lingering for place in places):
        return True
    # Inside one exchange the same reply may come several times in a row.
    return sum(reply.then not in places for reply in onward) > 1


def _leads(phase: Phase, label: str) -> bool:
    """Whether a message has an effect in a phase other than as a reply."""
    if any(move.label == label for move in phase.moves):
        return True
    starts = (start for start in phase.starts if start.label == label)
    return any(start.place is not None or start.phase != phase.name for start in starts)


def _holding(places: Iterable[str], phases: Sequence[Phase], replies: Sequence[Reply]) -> dict[str, set[str]]:
    """Return for each place the names of the phases in which a token may be in it."""
    before: dict[str, set[str]] = {}
    for reply in replies:
        if reply.then is not None:
            before.setdefault(reply.then, set()).add(reply.place)
    entered: dict[str, set[str]] = {}
    after: dict[str, set[str]] = {}
    for phase in phases:
        after[phase.name] = {move.target for move in phase.moves} | {start.phase for start in phase.starts}
        for start in phase.starts:
            if start.place is not None:
                entered.setdefault(start.place, set()).add(start.phase)
    found: dict[str, set[str]] = {}
    for place in places:
        starts = (entered.get(source, set()) for source in _reach([place], before))
        found[place] = _reach(set().union(*starts), after)
    return found


def _reach(starts: Iterable[str], steps: Mapping[str, Collection[str]]) -> set[str]:
    found = set(starts)
    waiting = list(found)
    while waiting:
        new = set(steps.get(waiting.pop(), ())) - found
        found |= new
        waiting += new
    return found
