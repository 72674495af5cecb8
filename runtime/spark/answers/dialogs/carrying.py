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
from specwire.runtime.spark.answers.dialogs.batches import Longs, Text
from specwire.runtime.spark.answers.dialogs.pairing import Resting
from specwire.runtime.spark.answers.dialogs.tokens import Held
from specwire.runtime.spark.answers.dialogs.watching import Watched

Part: TypeAlias = "Text | str"

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
    configurations = [_encoder.encode(node.configurations).decode() for node in automaton.nodes]
    from_middle: Any = pc.if_else(pa.array(watched.from_middle[:count]), "true", "false")
    return [
        '{"configurations":',
        pa.array(configurations, pa.string()).take(watched.node[:count]),
        ',"from_middle":',
        from_middle,
        *(',"restarts":', _digits(watched.restarts[:count])),
        *(',"violations":', _digits(watched.violations[:count])),
        *(',"waiting":', _digits(watched.waiting[:count])),
        *(',"tokens":', _tokens(watched.kept, watched.resting, count)),
        "}",
    ]


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
    columns: list[Any] = [pa.scalar(part) if isinstance(part, str) else part for part in parts]
    joined: Any = pc.binary_join_element_wise(*columns, "")
    return cast(Text, joined)
