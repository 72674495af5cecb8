"""Comparisons as Markdown: a section for a changelog, and a comment for a pull request."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from specwire.generator.compare.comparison import Change, Comparison, Verdict
from specwire.generator.compare.impact import Action, EditionChange, ProtocolChange

MOST_REASONS = 3
"""Maximum number of reasons of one action that are given; the others are counted."""
_VERBS = {Verdict.NO: "cannot read", Verdict.DEPENDS: "reads only under conditions"}


def write_section(change: EditionChange) -> str:
    """Return a section of level 3: what changed, who must act, which tables change, what to do."""
    comparison, impact = change.comparison, change.impact
    old, new = (_plain(edition.edition) for edition in (comparison.old, comparison.new))
    editions = new if old == new else f"{old} to {new}"
    lines = [f"### {_plain(change.new.title)}: {editions} ({comparison.verdict})", ""]
    if not comparison.changes:
        return "\n".join([*lines, "Nothing changes for peers and tables.", ""])
    lines += [*map(_change, comparison.changes), ""]
    if impact.actions:
        lines += ["Who must act:", "", *(line for action in impact.actions for line in _action(action)), ""]
    if impact.tables:
        lines += ["Tables:", ""]
        lines += [f"- {_code(one.table)}: {one.effect}: {_plain(one.why)}." for one in impact.tables]
        lines += [""]
    return "\n".join([*lines, advice(comparison), ""])


def advice(comparison: Comparison) -> str:
    """Return one sentence about what to do, from the verdicts of both directions."""
    match comparison.old_reads_new, comparison.new_reads_old:
        case Verdict.YES, Verdict.YES:
            return "Old and new peers can run side by side."
        case (Verdict.NO, _) | (_, Verdict.NO):
            return "Old and new peers cannot run side by side: update them together, or keep both packages."
        case _, Verdict.YES:
            return "Update the readers named above first: updated ones read old and new peers."
        case Verdict.YES, _:
            return "Update the writers named above first: readers that are not updated read them."
    return "Old and new peers can run side by side where they meet the conditions above."


def write_comment(commit: str, changes: Sequence[ProtocolChange]) -> str:
    """Return a comment for a pull request: how many protocols changed, then a section for each."""
    if not changes:
        return f"No protocol changed since {_code(commit)}.\n"
    words = {one.name: one.change.comparison.verdict if one.change else one.status for one in changes}
    counts = ", ".join(f"{number} {word}" for word, number in Counter(words.values()).items())
    lines = [f"## Protocols changed since {_code(commit)}: {counts}", ""]
    for one in changes:
        if one.change is None:
            lines += [f"### {_plain(one.name)}: {one.status}", ""]
        elif one.change.comparison.changes:
            lines.append(write_section(one.change))
    same = ", ".join(_code(name) for name, word in words.items() if word == "same")
    return "\n".join([*lines, *([f"No effect on peers and tables: {same}.", ""] if same else [])])


def _change(change: Change) -> str:
    where = "" if change.group == change.name else f"{_code(change.group)}: "
    states = (("was", change.old), ("is", change.new))
    told = ", ".join(f"{word} {_code(state)}" for word, state in states if state is not None)
    if change.old is None:
        told = told.removeprefix("is ")
    return f"- {where}{change.subject} {_code(change.name)} {change.kind}{told and f': {told}'}."


def _action(action: Action) -> Iterator[str]:
    subjects = ", ".join(map(_code, action.subjects))
    who = f"{action.reader_edition} {_plain(action.reader)}"
    yield f"- The {who} {_VERBS[action.verdict]} {subjects} of the {action.writer_edition} {_plain(action.writer)}:"
    yield from (f"    - {_plain(why)}" for why in action.why[:MOST_REASONS])
    if len(action.why) > MOST_REASONS:
        yield f"    - and {len(action.why) - MOST_REASONS} more reasons"


def _code(text: str) -> str:
    return f"`{' '.join(text.replace('`', chr(39)).split())}`"


def _plain(text: str) -> str:
    """Return the text without a meaning in Markdown or HTML."""
    return re.sub(r"([\\`*_\[\]<>#|])", r"\\\1", " ".join(text.split()))
