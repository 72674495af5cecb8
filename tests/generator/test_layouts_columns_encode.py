"""Random layouts of every kind: columns are written to the octets that the row codec writes, or refused as it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specwire.generated.errors import EncodeError
from specwire.generated.messages import Message
from specwire.generator import ir
from specwire.generator.pipeline import compile_protocol
from tests.generated import strategies
from tests.generated.agreement import mutated
from tests.generated.column_rows import batch_of
from tests.generator import layouts
from tests.generator.compiling import write
from tests.generator.layout_grammars import grammars
from tests.generator.test_layouts import RANDOM, generated, home

__all__ = ("home",)


def check_protocol(home: Path, protocol: ir.Protocol, data: st.DataObject) -> None:
    """Messages alone and together, spoilt ones, and captures in which not every row decodes."""
    with generated(home, protocol) as module:
        drawn = data.draw(st.lists(strategies.messages(module), min_size=4, max_size=8))
        frames = list(encodable(drawn))
        check_together(module, [message for message, _ in frames], [octets for _, octets in frames])
        for message in data.draw(st.lists(strategies.anything(module), max_size=8)):
            check_alone(module, message)
        chance = Random(data.draw(st.integers(0, 2**32)))
        check_capture(module, [mutated(octets, chance) for _, octets in frames for _ in range(5)])


def encodable(messages: list[Message]) -> Iterator[tuple[Message, list[bytes]]]:
    for message in messages:
        try:
            yield message, message.encode()
        except EncodeError:
            continue


def check_together(module: ModuleType, messages: list[Message], frames: list[list[bytes]]) -> None:
    found = module.columns.encode(batch_of(module, messages))
    found.validate(full=True)
    assert found.type == pa.list_(pa.binary())
    assert found.to_pylist() == frames
    batch = batch_of(module, messages)
    assert module.columns.encode(batch.slice(1)).to_pylist() == frames[1:]
    assert module.columns.encode(hidden(batch)).to_pylist() == [None, *frames[1:]][: len(frames)]


def hidden(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with its first row null; what is under a null is not looked at, but it is there."""
    columns: dict[str, Any] = {}
    for name in batch.schema.names:
        whole: Any = batch.column(name)
        mask = pa.array([index == 0 or not one.is_valid for index, one in enumerate(whole)], pa.bool_())
        inside = [whole.field(index) for index in range(whole.type.num_fields)]
        columns[name] = pa.StructArray.from_arrays(inside, fields=list(whole.type), mask=mask)
    return pa.record_batch(columns)


def check_alone(module: ModuleType, message: Message) -> None:
    """One row, where Arrow's types can hold the very values of the message."""
    if says_what_follows(module, message):
        return
    try:
        batch = batch_of(module, [message])
    except (TypeError, ValueError, OverflowError, pa.ArrowException):
        return
    for strict in (False, True):
        try:
            expected = message.encode(strict=strict)
        except EncodeError as error:
            with pytest.raises(EncodeError) as refused:
                module.columns.encode(batch, strict=strict)
            assert (refused.value.row, refused.value.attributes()) == (0, error.attributes())
        else:
            assert module.columns.encode(batch, strict=strict).to_pylist() == [expected]


def says_what_follows(module: ModuleType, message: Message) -> bool:
    """Whether the flags have bits that announce parts: a message must leave them out, columns must hold them."""
    flags = getattr(message, "flags", None)
    return isinstance(flags, int) and bool(flags & module.layout.LAYOUT.announcing)


def check_capture(module: ModuleType, capture: list[list[bytes]]) -> None:
    """What was decoded comes back: raw where it did not decode, else as the codec writes it."""
    rows = [*capture, None, []]
    found = module.columns.encode(module.columns.decode(pa.array(rows, pa.list_(pa.binary()))))
    for row, octets in zip(rows, found.to_pylist(), strict=True):
        assert octets == rewritten(module, row)


def rewritten(module: ModuleType, frames: list[bytes] | None) -> list[bytes] | None:
    try:
        written: list[bytes] = module.decode(frames or ()).encode()
    except ValueError:
        return frames
    return written


@RANDOM
@given(layouts.protocols | layouts.more, st.data())
def test_random_layouts(home: Path, protocol: ir.Protocol, data: st.DataObject) -> None:
    check_protocol(home, protocol, data)


@RANDOM
@given(grammars(), st.data())
def test_random_grammars(home: Path, grammar: str, data: st.DataObject) -> None:
    protocol = compile_protocol(write(home / "grammars", grammar), shown="demo").protocol
    check_protocol(home, protocol, data)
