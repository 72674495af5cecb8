"""Open conversations as JSON, those of a whole batch at once.

The texts are what `opened.to_text` writes of each, put together column by column: a run leaves a conversation open for
hours after its last message, so most of those that it sees are written, and one object after another in Python would take
five times as long as following them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from specwire.runtime.spark.answers.dialogs.automaton import Automaton
from specwire.runtime.spark.answers.dialogs.pairing import Resting
from specwire.runtime.spark.answers.dialogs.texts import Longs, Text
from specwire.runtime.spark.answers.dialogs.tokens import Held
from specwire.runtime.spark.answers.dialogs.watching import Watched

Part: TypeAlias = "Text | str"

NO_TOKENS = "[]}"
"""How the text of a track without tokens ends."""

MOST = 1 << 31
"""So many values of one column, times as many of the next, are numbers that can be told apart."""

_encoder = msgspec.json.Encoder()


def write_all(
    numbers: Mapping[str, Longs], automata: Sequence[Automaton], watched: Sequence[Watched], count: int
) -> Text:
    """Return the first `count` conversations of a batch; `numbers` are the fields of `Opened` before its tracks."""
    parts: list[Part] = ["{"]
    for name, column in numbers.items():
        parts += [f'"{name}":', _digits(column[:count]), ","]
    parts.append('"tracks":[')
    for reading, (automaton, seen) in enumerate(zip(automata, watched, strict=True)):
        parts += ["," if reading else "", *_track(automaton, seen, count)]
    parts.append("]}")
    return _join(parts)


def _track(automaton: Automaton, watched: Watched, count: int) -> list[Part]:
    """Return one track, most of which is the same text for thousands of conversations: each such text is made once."""
    columns = (watched.node, watched.from_middle, watched.restarts, watched.violations, watched.waiting)
    alike, firsts = _group([column[:count].astype(np.int64) for column in columns])
    tracks = (watched.track(automaton, first) for first in firsts.tolist())
    texts = [_encoder.encode(msgspec.structs.replace(track, tokens=())).decode() for track in tracks]
    heads: Text = pa.array([text.removesuffix(NO_TOKENS) for text in texts], pa.string())
    return [heads.take(alike), _tokens(watched.kept, watched.resting, count), "}"]


def _group(columns: Sequence[Longs]) -> tuple[Longs, Longs]:
    """Return for each row the number of its group, of rows that are equal in all columns, and a row of each group."""
    group, groups = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        several = int(column.max()) + 1
        if groups * several > MOST:
            group, groups = _number(group)
        group, groups = group * several + column, groups * several
    group, groups = _number(group)
    firsts = np.empty(groups, np.int64)
    firsts[group[::-1]] = np.arange(len(group))[::-1]  # of several the last that is written stays
    return group, firsts


def _number(values: Longs) -> tuple[Longs, int]:
    """Return for each value a number from 0 that equal ones share, and how many numbers there are."""
    numbered: Any = pa.array(values).dictionary_encode()
    return numbered.indices.to_numpy().astype(np.int64), len(numbered.dictionary)


def _tokens(kept: Mapping[int, Held], resting: Resting | None, count: int) -> Part:
    known = {number: held for number, held in kept.items() if held and number < count}
    if resting is None and not known:
        return "[]"
    texts = _rest(resting, count) if resting is not None else pa.array(["[]"] * count, pa.string())
    if not known:
        return texts
    slow = np.zeros(count, np.bool_)
    slow[list(known)] = True
    written = [_encoder.encode(known[number]).decode() for number in sorted(known)]
    return cast(Text, pc.replace_with_mask(texts, pa.array(slow), pa.array(written, pa.string())))


def _rest(resting: Resting, count: int) -> Text:
    columns = (_digits(column) for column in (resting.place, resting.key, resting.tokens))
    place, key, number = columns
    each = _join(["[", place, ",", key, ",", number, "]"])
    offsets = np.searchsorted(resting.conversation, np.arange(count + 1)).astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), each)
    by_conversation: Any = pc.binary_join(lists, ",")
    return _join(["[", by_conversation, "]"])


def _digits(column: Longs) -> Text:
    return pa.array(column).cast(pa.string())


def _join(parts: Sequence[Part]) -> Text:
    fewer: list[Any] = []
    for part in parts:
        if isinstance(part, str) and fewer and isinstance(fewer[-1], str):
            fewer[-1] += part
        else:
            fewer.append(part)
    columns: list[Any] = [pa.scalar(part) if isinstance(part, str) else part for part in fewer]
    joined: Any = pc.binary_join_element_wise(*columns, "")
    return cast(Text, joined)
