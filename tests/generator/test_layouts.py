"""Random layouts of every kind: the generated codec, Construct and a naive interpreter of the IR agree.

The codec's fast and slow paths share the IR with the other two and nothing else: Construct reads the declarations
that another emitter writes, and the interpreter reads the IR itself. Octets are those of random messages, and the
same cut, changed and put together anew.
"""

from __future__ import annotations

import importlib.util
import math
import struct
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import pyspark.sql.types as spark
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specwire.generated.errors import DecodeError, EncodeError
from specwire.generated.messages import Message, Record
from specwire.generated.refusal import explain_decode
from specwire.generator import ir
from specwire.generator.packages import package_files
from specwire.generator.pipeline import compile_protocol
from specwire.generator.targets import choose_targets
from tests.examples import examples
from tests.generated import strategies
from tests.generated.agreement import assert_agreement, layout_of, mutated, some_truncations
from tests.generated.column_agreement import assert_same_columns
from tests.generated.test_columns import as_spark_field
from tests.generated.test_encoding import assert_encodes_or_says_why
from tests.generator import interpreter, layouts
from tests.generator.compiling import write
from tests.generator.interpreter import Chosen, Content, Contents, Refused
from tests.generator.layout_grammars import grammars

RANDOM = settings(
    max_examples=examples(12),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


MOST = 300
"""Spoilt messages that are looked at, of all that long ones give."""


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """The folder of the generated packages: one for all, so that the same fault is known again by its place."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        # Packages follow each other within a second, with sources of one size.
        patch.setattr(sys, "dont_write_bytecode", True)
        yield Path(folder)


@contextmanager
def generated(
    home: Path, protocol: ir.Protocol, targets: Sequence[str] | None = None
) -> Iterator[ModuleType]:
    """The package that is generated for a protocol, imported under a name of its own for a while."""
    name = "random_layout"
    for path, text in package_files([protocol], choose_targets(targets)).items():
        file = home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    package = home / protocol.name
    spec = importlib.util.spec_from_file_location(
        name, package / "__init__.py", submodule_search_locations=[str(package)]
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        for loaded in [one for one in sys.modules if one.split(".")[0] == name]:
            del sys.modules[loaded]


def contents_of(protocol: ir.Protocol, message: Message) -> Contents:
    """What the interpreter takes, from a message of the codec."""
    layout = next(one for one in protocol.messages if one.class_name == type(message).__name__)
    found: dict[str, Content] = {}
    for part in layout.parts:
        for field in part.fields if isinstance(part, ir.Frame) else (part.field,):
            if field.implied:
                continue
            value = getattr(message, field.attribute)
            if isinstance(part, ir.Frame) or value is None:
                found[field.name] = content_of(protocol, field.type, value)
            else:
                found[field.name] = tuple(content_of(protocol, field.type, item) for item in value)
    return found


def content_of(protocol: ir.Protocol, type: ir.Type, value: Any) -> Content:
    if value is None:
        return None
    match type:
        case ir.IntegerType(octets=octets, order=order, signed=signed):
            return int(value).to_bytes(octets, order, signed=signed)
        case ir.BooleanType(octets=octets, order=order):
            return int(value).to_bytes(octets, order)
        case ir.FloatType(octets=octets, order=order):
            value = math.nan if math.isnan(value) else value
            return struct.pack(("<" if order == "little" else ">") + ("f" if octets == 4 else "d"), value)
        case ir.VarintType() | ir.DigitsType() | ir.BitType() | ir.PresentType():
            return int(value)
        case ir.EnclosingType(name=name):
            return content_of(protocol, interpreter.named_type(protocol, name), value)
        case ir.UuidType(order=order):
            octets_of_uuid: bytes = value.bytes_le if order == "little" else value.bytes
            return octets_of_uuid
        case ir.ListType(element=element):
            return tuple(content_of(protocol, element, item) for item in value)
        case ir.PairsType(value=of_value):
            inner: ir.Type = of_value or ir.JsonType()
            return tuple((name.encode(), content_of(protocol, inner, item)) for name, item in value)
        case ir.RecordType(fields=fields):
            return {
                field.name: content_of(protocol, field.type, getattr(value, field.attribute))
                for field in fields
                if not field.implied
            }
        case ir.UnionType(options=options):
            (option,) = (one for one in options if one.class_name == value.__class__.__name__)
            contents = content_of(protocol, option, value)
            assert isinstance(contents, dict)
            return Chosen(option.name, contents)
    return value.encode() if isinstance(value, str) else bytes(value)


def without_implied(protocol: ir.Protocol, message: ir.Message, contents: Contents) -> Contents:
    """What the interpreter read, less what follows from the rest and the bits that announce parts."""
    found: dict[str, Content] = {}
    bits = sum(bit.value for bit in protocol.flags if bit.announces)
    for part in message.parts:
        for field in part.fields if isinstance(part, ir.Frame) else (part.field,):
            if field.implied:
                continue
            content = contents.get(field.name)
            if interpreter.is_flags(field):
                assert isinstance(content, bytes)
                content = bytes((content[0] & ~bits,))
            if isinstance(part, ir.Frame) or content is None:
                found[field.name] = valued(protocol, field.type, content)
            else:
                assert isinstance(content, tuple)
                found[field.name] = tuple(valued(protocol, field.type, item) for item in content)
    return found


def valued(protocol: ir.Protocol, type: ir.Type, content: Content) -> Content:
    match type, content:
        case ir.EnclosingType(name=name), _:
            return valued(protocol, interpreter.named_type(protocol, name), content)
        case ir.ListType(element=element), tuple():
            return tuple(valued(protocol, element, item) for item in content)
        case ir.RecordType(fields=fields), dict():
            return {f.name: valued(protocol, f.type, content.get(f.name)) for f in fields if not f.implied}
        case ir.UnionType(options=options), Chosen(option=name, contents=inside):
            (option,) = (one for one in options if one.name == name)
            contents = valued(protocol, option, inside)
            assert isinstance(contents, dict)
            return Chosen(name, contents)
    return content


def check_encoding(protocol: ir.Protocol, module: ModuleType, message: Message) -> list[bytes] | None:
    """The interpreter writes what the codec writes, or both refuse."""
    layout = next(one for one in protocol.messages if one.class_name == type(message).__name__)
    try:
        frames = interpreter.encode(protocol, layout, contents_of(protocol, message))
    except Refused:
        with pytest.raises(EncodeError):
            message.encode()
        return None
    assert message.encode() == frames
    assert module.decode(frames) == message
    return frames


def check_decoding(protocol: ir.Protocol, module: ModuleType, frames: list[bytes]) -> bool:
    """The codec, Construct and the interpreter read the same, or all refuse."""
    read = assert_agreement(module, frames)
    assert read == ("disagreement" in explain_decode(layout_of(module), frames).found), (
        "of fast and slow path"
    )
    check_lending(module, frames)
    try:
        layout, contents = interpreter.decode(protocol, frames)
    except Refused:
        assert not read, "the interpreter alone refuses"
        return False
    assert read, "the interpreter alone reads"
    message = module.decode(frames)
    assert type(message).__name__ == layout.class_name
    assert contents_of(protocol, message) == without_implied(protocol, layout, contents)
    assert module.constructs.parse(frames)[0] == layout.class_name
    return True


def check_lending(module: ModuleType, frames: list[bytes]) -> None:
    """From frames of another kind, with octets copied or not, comes the same; the limits are exact."""
    others = [memoryview(bytearray(frame)) for frame in frames]
    try:
        message = module.decode(frames)
    except DecodeError as error:
        for copy in (True, False):
            with pytest.raises(DecodeError) as caught:
                module.decode(others, copy=copy)
            assert caught.value.attributes() == error.attributes()
        return
    for copy in (True, False):
        assert module.decode(frames, copy=copy) == message
        assert module.decode(others, copy=copy) == message
    lent = list(leaves(module.decode(others, copy=False)))
    copied = list(leaves(message))
    # Where octets are copied, and only there, is a view where they are not.
    assert [type(value) is bytes for value in copied] == [type(value) is memoryview for value in lent]
    octets = sum(map(len, frames))
    assert module.decode(others, max_frames=len(frames), max_octets=octets) == message
    for limits in ({"max_frames": len(frames) - 1}, {"max_octets": octets - 1}):
        for given_frames in (frames, others):
            with pytest.raises(DecodeError) as caught:
                module.decode(given_frames, **limits)
            assert caught.value.kind == "limit"


def leaves(value: Any) -> Iterator[Any]:
    """The values in a message that have no values inside."""
    if isinstance(value, Record):
        for name in type(value).__match_args__:
            yield from leaves(getattr(value, name))
    elif isinstance(value, tuple):
        for item in value:
            yield from leaves(item)
    else:
        yield value


def check_columns(protocol: ir.Protocol, module: ModuleType, corpus: list[list[bytes]]) -> None:
    """Arrow's schema and Spark's are twins, and rows hold what messages do; none was decoded by itself."""
    twin = spark.StructType([as_spark_field(field) for field in module.columns.SCHEMA])
    assert twin.jsonValue() == module.schema.DECODED.jsonValue()
    batch = assert_same_columns(module, corpus)
    for frames, row in zip(corpus, batch.to_pylist(), strict=True):
        message = module.decode(frames)
        name = type(message).__name__
        layout = next(one for one in protocol.messages if one.class_name == name)
        assert (row["_message"], row["_error"]) == (name, None)
        assert row[name] == row_of(protocol, layout.parts, message)


def row_of(protocol: ir.Protocol, parts: tuple[ir.Part, ...], message: Message) -> dict[str, Any]:
    """A message as a row, by the words of the tables."""
    found: dict[str, Any] = {}
    for part in parts:
        for field in part.fields if isinstance(part, ir.Frame) else (part.field,):
            if field.implied:
                continue
            name = "wire_flags" if interpreter.is_flags(field) else field.attribute
            value = getattr(message, name)
            if value is not None and not isinstance(part, ir.Frame):
                found[field.name] = list(value)
            else:
                found[field.name] = cell_of(protocol, field.type, value)
    return found or {"_present": True}


def cell_of(protocol: ir.Protocol, type: ir.Type, value: Any) -> Any:
    """A value as a cell; one that contains itself has its octets there."""
    if value is None:
        return None
    match type:
        case ir.EnclosingType():
            return interpreter.write(protocol, type, content_of(protocol, type, value))
        case ir.ListType(element=element):
            return [cell_of(protocol, element, item) for item in value]
        case ir.PairsType():
            return [{"name": name, "value": item} for name, item in value]
        case ir.RecordType(fields=fields):
            valued = [field for field in fields if not field.implied]
            row = {f.name: cell_of(protocol, f.type, getattr(value, f.attribute)) for f in valued}
            return row or {"_present": True}
        case ir.UnionType(options=options):
            name = value.__class__.__name__
            return {
                option.name: cell_of(protocol, option, value) if option.class_name == name else None
                for option in options
            }
    return value


def check_protocol(home: Path, protocol: ir.Protocol, data: st.DataObject) -> None:
    """All four agree on random messages, and on octets that are nearly messages."""
    with generated(home, protocol) as module:
        corpus: list[list[bytes]] = []
        for message in data.draw(st.lists(strategies.messages(module), min_size=4, max_size=8)):
            assert_encodes_or_says_why(module, message)
            frames = check_encoding(protocol, module, message)
            if frames is not None:
                assert check_decoding(protocol, module, frames)
                corpus.append(frames)
        for message in data.draw(st.lists(strategies.anything(module), max_size=8)):
            assert_encodes_or_says_why(module, message)
        chance = Random(data.draw(st.integers(0, 2**32)))
        spoilt = [list(short) for frames in corpus for short in some_truncations(frames, MOST, chance)]
        spoilt += [mutated(frames, chance) for frames in corpus for _ in range(20)]
        spoilt = chance.sample(spoilt, min(len(spoilt), MOST))
        for frames in spoilt:
            check_decoding(protocol, module, frames)
        check_decoding(protocol, module, [chance.randbytes(chance.randrange(30))])
        check_columns(protocol, module, corpus)
        assert_same_columns(module, [*corpus, *spoilt, *corpus])


@RANDOM
@given(layouts.protocols, st.data())
def test_random_layouts(home: Path, protocol: ir.Protocol, data: st.DataObject) -> None:
    """What the IR allows, whether a grammar leads there or not."""
    check_protocol(home, protocol, data)


@RANDOM
@given(layouts.more, st.data())
def test_random_layouts_with_more_values(home: Path, protocol: ir.Protocol, data: st.DataObject) -> None:
    """Bits, options, items up to octets, letters of either case, delimiters, and values that contain themselves."""
    check_protocol(home, protocol, data)


@RANDOM
@given(grammars(), st.data())
def test_random_grammars(home: Path, grammar: str, data: st.DataObject) -> None:
    """From the text of a grammar, the whole way."""
    protocol = compile_protocol(write(home / "grammars", grammar), shown="demo").protocol
    check_protocol(home, protocol, data)


def _field(name: str, of: ir.Type, *, optional: bool = False) -> ir.Field:
    return ir.Field(
        name=name, attribute=name, type=of, rule=None, line=0, doc="", unit=None, default=None,
        required=not optional, nullable=optional, sentinels=(), optional=optional, content=None,
    )  # fmt: skip


def _message(number: int, *fields: ir.Field) -> ir.Message:
    name, tag = f"MESSAGE-{number}", f"aaa10{number}"
    mark = _field("mark", ir.ConstantType(hex=tag, text=None, number=None))
    frame = ir.Frame(name=name, fields=(mark, *fields), presence=ir.Always(mask=0, value=0), letter=None)
    return ir.Message(
        name=name, rule=name, class_name=f"Message{number}", doc="", line=0, senders=(), parts=(frame,),
        tags=(tag,), shadowed=False, shapes=(),
    )  # fmt: skip


def test_padded_text_that_may_be_left_out_is_read_from_a_view(home: Path) -> None:
    """It is sliced out of its frame, and not unpacked as those are that are always there."""
    octets = _field("body", ir.OctetsType(ir.Length("rest")))
    padded = _field("alpha", ir.TextType(ir.Length("fixed", 4), padding="20"), optional=True)
    protocol = ir.Protocol(
        ir_version=2, name="demo", title="Demo", edition="Demo v1", source="", digest="0" * 64, roles=(),
        messages=(_message(1, octets), _message(2, padded)), selectors=(ir.Selector(0, 3, False),), rules=(),
        flags=(), enums=(), constants=(), timers=(), answers=(), unexpected=(), dialogs=(), stream=None,
    )  # fmt: skip
    with generated(home, protocol) as module:
        assert module.decode([memoryview(b"\xaa\xa1\x02ab  ")], copy=False).alpha == "ab"
        assert module.decode([memoryview(b"\xaa\xa1\x02")], copy=False).alpha is None
