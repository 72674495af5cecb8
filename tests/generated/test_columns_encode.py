"""Columns back to frames: the inverse of decoding, equal to the row codec in octets and in refusals."""

from __future__ import annotations

import pickle
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from specwire.generated.columns import encoding as columns_encoding
from specwire.generated.errors import EncodeError
from specwire.generated.messages import Message
from tests.examples import examples
from tests.generated import strategies
from tests.generated.builds import package
from tests.generated.column_rows import batch_of, column
from tests.generated.hand_vectors import HAND
from tests.generated.vectors import PACKAGES, recorded

FRAMES = pa.list_(pa.binary())
TEXT_PAIRS = pa.list_(pa.struct([("name", pa.string()), ("value", pa.string())]))


def capture(name: str) -> list[list[bytes]]:
    """The recorded messages of a package and those written by hand, good and bad."""
    return [list(v.frames) for v in [*recorded(name), *(h for h in HAND if h.package == name)]]


def rewritten(module: ModuleType, frames: list[bytes]) -> list[bytes]:
    """The frames as the row codec writes them; those that it does not read as they are."""
    try:
        written: list[bytes] = module.decode(frames).encode()
    except ValueError:
        return frames
    return written


def one(message: str, /, **fields: Any) -> pa.RecordBatch:
    """One message as a row of one column, in the types that pyarrow infers for what is given as an array."""
    arrays = [value if isinstance(value, pa.Array) else pa.array([value]) for value in fields.values()]
    return pa.record_batch({message: pa.StructArray.from_arrays(arrays, list(fields))})


def octets(module: ModuleType, batch: pa.RecordBatch | pa.Table, *, strict: bool = False) -> Any:
    """The encoded rows as Python lists."""
    found = module.columns.encode(batch, strict=strict)
    found.validate(full=True)
    assert found.type == FRAMES
    return found.to_pylist()


def refused(module: ModuleType, batch: pa.RecordBatch | pa.Table, *, strict: bool = False) -> EncodeError:
    with pytest.raises(EncodeError) as error:
        module.columns.encode(batch, strict=strict)
    return error.value


@pytest.mark.parametrize("name", PACKAGES)
def test_decoded_captures_come_back(name: str, build: str) -> None:
    """Good rows as the codec writes them, which is how they came but for other spellings; bad ones untouched."""
    module = package(name, build)
    rows = [*capture(name), None, [], [None], [b"x", None], [b""]]
    batch = module.columns.decode(pa.array(rows, FRAMES))
    assert octets(module, batch) == [*(rewritten(module, row) for row in capture(name)), *rows[-5:]]


@pytest.mark.parametrize("name", PACKAGES)
def test_no_row_of_a_good_capture_is_written_by_itself(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every layout of our protocols is written in columns."""
    module = package(name, "pure")
    monkeypatch.setattr(columns_encoding, "encode_row", None)
    rows = capture(name)
    batch = module.columns.decode(pa.array(rows, FRAMES))
    assert octets(module, batch) == [rewritten(module, row) for row in rows]


@pytest.mark.parametrize("name", PACKAGES)
def test_strict_writes_the_letter_or_refuses_as_a_message_does(name: str, build: str) -> None:
    module = package(name, build)
    for frames in capture(name):
        batch = module.columns.decode(pa.array([frames], FRAMES))
        if not batch.column("_message")[0].is_valid:
            assert octets(module, batch, strict=True) == [frames]
            continue
        try:
            expected = module.decode(frames).encode(strict=True)
        except EncodeError as error:
            assert refused(module, batch, strict=True).attributes() == error.attributes()
        else:
            assert octets(module, batch, strict=True) == [expected]


@pytest.mark.parametrize("name", PACKAGES)
@settings(max_examples=examples(25), deadline=None)
@given(data=st.data())
def test_any_messages_together(name: str, build: str, data: st.DataObject) -> None:
    module = package(name, build)
    messages: list[Message] = data.draw(st.lists(strategies.messages(module), max_size=12))
    assert octets(module, batch_of(module, messages)) == [message.encode() for message in messages]


# One message of each kind of layout; the octets are put together here from the rules beside them.


def test_integers_constants_and_decimals(filemq: Any) -> None:
    """NOM = signature %d7 credit: eight octets, big-endian."""
    assert octets(filemq, one("Nom", credit=Decimal(2**64 - 2))) == [
        [b"\xaa\xa3\x07" + b"\xff" * 7 + b"\xfe"]
    ]


def test_texts_and_split_pairs(filemq: Any) -> None:
    """ICANHAZ: a path, then two dictionaries of texts with an ``=`` inside, each with its length and count."""
    batch = one(
        "Icanhaz",
        path="/a",
        options=pa.array([[("k", "a=b"), ("k", "")]], TEXT_PAIRS),
        cache=pa.array([[("a=b", "\u00e9")]], TEXT_PAIRS),
    )
    frame = b"\xaa\xa3\x05" + b"\x02/a" + b"\x02" + b"\x05k=a=b" + b"\x02k=" + b"\x01" + b"\x06a=b=\xc3\xa9"
    assert octets(filemq, batch) == [[frame]]


def test_frames_behind_each_other(filemq: Any) -> None:
    """CHEEZBURGER: a header frame, and the chunk in one of its own."""
    batch = one(
        "Cheezburger",
        sequence=1, operation=2, filename="f", offset=256, headers=pa.array([[]], TEXT_PAIRS), chunk=b"abc",
    )  # fmt: skip
    head = b"\xaa\xa3\x08" + b"\0" * 7 + b"\x01" + b"\x02" + b"\x01f" + b"\0" * 6 + b"\x01\0" + b"\0"
    assert octets(filemq, batch) == [[head, b"abc"]]


def test_stacks_and_announced_frames(flux: Any) -> None:
    """Routes up to an empty frame (0x08), a topic (0x01), a payload (0x02), and the header last."""
    rows: list[dict[str, Any]] = [
        {"routes": ["a", "bc"], "topic": "t", "payload": None, "flags": 0x19},
        {"routes": [], "topic": None, "payload": b"", "flags": 0x0A},
        {"routes": None, "topic": "", "payload": b"\0", "flags": 0x03},
    ]
    numbers: dict[str, Any] = {"userid": 1, "rolemask": 2, "nodeid": 3, "matchtag": 4}
    batch = pa.record_batch({"Request": pa.array([row | numbers for row in rows], column(flux, "Request"))})
    tail = b"\0\0\0\x01\0\0\0\x02\0\0\0\x03\0\0\0\x04"
    assert octets(flux, batch) == [
        [b"a", b"bc", b"", b"t", b"\x8e\x01\x01\x19" + tail],
        [b"", b"", b"\x8e\x01\x01\x0a" + tail],
        [b"", b"\0", b"\x8e\x01\x01\x03" + tail],
    ]


def test_lists_and_pairs_of_two_texts(zre: Any) -> None:
    """HELLO: a list of long strings, and a dictionary of strings and long strings; counts of four octets."""
    batch = one(
        "Hello",
        version=2, sequence=1, endpoint="e", groups=pa.array([["A", ""]]), status=3, name="n",
        headers=pa.array([[("k", "v")]], TEXT_PAIRS),
    )  # fmt: skip
    frame = b"\xaa\xa1\x01\x02" + b"\0\x01" + b"\x01e" + b"\0\0\0\x02" + b"\0\0\0\x01A" + b"\0\0\0\0"
    frame += b"\x03" + b"\x01n" + b"\0\0\0\x01" + b"\x01k" + b"\0\0\0\x01v"
    assert octets(zre, batch) == [[frame]]


def test_all_frames_that_are_left(zre: Any) -> None:
    rows = pa.array([[b"a", b""], []], pa.list_(pa.binary()))
    batch = pa.record_batch(
        {"Whisper": pa.StructArray.from_arrays([pa.array([2, 2]), pa.array([1, 258]), rows], ["version", "sequence", "content"])}
    )  # fmt: skip
    assert octets(zre, batch) == [[b"\xaa\xa1\x02\x02\0\x01", b"a", b""], [b"\xaa\xa1\x02\x02\x01\x02"]]


def test_sizes_in_the_shortest_form_and_pairs_of_octets(zmtp: Any) -> None:
    """A command's size has one octet after 0x04 up to 255, else eight after 0x06."""
    pairs = pa.list_(pa.struct([("name", pa.string()), ("value", pa.binary())]))
    values = pa.array([[("A", b"\0")], [("A", b"x" * 300)]], pairs)
    batch = pa.record_batch({"Ready": pa.StructArray.from_arrays([values], ["metadata"])})
    short = b"\x05READY" + b"\x01A" + b"\0\0\0\x01\0"
    long = b"\x05READY" + b"\x01A" + b"\0\0\x01\x2c" + b"x" * 300
    assert octets(zmtp, batch) == [[b"\x04\x0d" + short], [b"\x06" + b"\0" * 6 + b"\x01\x38" + long]]


def test_padding_and_padded_texts(zmtp: Any) -> None:
    """The greeting of 64 octets: the mechanism is filled up with NUL to 20."""
    batch = one("Greeting", mechanism="NULL", as_server=1)
    frame = b"\xff" + b"\0" * 8 + b"\x7f\x03\x01" + b"NULL" + b"\0" * 16 + b"\x01" + b"\0" * 31
    assert octets(zmtp, batch) == [[frame]]


def test_keywords_and_frames_left_out_at_the_end(norfab: Any) -> None:
    rows = [
        {"header": "NFPB01", "service": "s", "body": b"b"},
        {"header": "NFPW01", "service": "s"},
        {"header": "NFPW01"},
    ]
    batch = pa.record_batch({"Disconnect": pa.array(rows, column(norfab, "Disconnect"))})
    assert octets(norfab, batch) == [
        [b"", b"NFPB01", b"\x03", b"s", b"b"],
        [b"", b"NFPW01", b"\x03", b"s"],
        [b"", b"NFPW01", b"\x03"],
    ]


def test_messages_without_fields(filemq: Any) -> None:
    batch = pa.record_batch({"Hugz": pa.array([{"_present": True}, None, {}], column(filemq, "Hugz"))})
    assert octets(filemq, batch) == [[b"\xaa\xa3\x09"], None, [b"\xaa\xa3\x09"]]


# Refusals: those of the message that the row is, with the row.


def spoilt(module: ModuleType, good: Message, bad: Message) -> None:
    """A batch of `good` with `bad` in the third row is refused as `bad` is, and the row is told."""
    with pytest.raises(EncodeError) as expected:
        bad.encode()
    error = refused(module, batch_of(module, [good, good, bad, good, bad]))
    assert error.row == 2
    assert error.attributes() == expected.value.attributes()
    assert str(error) == f"row 2: {expected.value}"
    again = pickle.loads(pickle.dumps(error))
    assert (again.row, str(again)) == (2, str(error))


def cheezburger(filemq: Any, **changes: Any) -> Any:
    return filemq.Cheezburger(sequence=1, operation=1, filename="f", offset=0, headers=(), chunk=b"").replace(
        **changes
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"sequence": -1}, {"sequence": 2**64}, {"operation": 3}, {"operation": 257}, {"filename": "x" * 256},
        {"filename": None}, {"sequence": None}, {"chunk": None}, {"headers": None}, {"headers": (None,)},
        {"headers": (("a", "b"),) * 256}, {"headers": (("a=", "b"),)}, {"headers": (("a", "x" * 254),)},
        {"headers": (("good", "1"), ("a", None))}, {"filename": "\u00e9" * 128},
    ],
    ids=str,
)  # fmt: skip
def test_what_a_field_cannot_hold(filemq: Any, changes: dict[str, Any]) -> None:
    spoilt(filemq, cheezburger(filemq), cheezburger(filemq, **changes))


@pytest.mark.parametrize(
    "changes",
    [{"topic": "a\0b"}, {"routes": ("",)}, {"routes": ("a", None)}, {"routes": ("a\0",)}, {"userid": 2**32}, {"userid": None}],
    ids=str,
)  # fmt: skip
def test_what_frames_cannot_hold(flux: Any, changes: dict[str, Any]) -> None:
    good = flux.Request(topic="a", routes=("b",))
    spoilt(flux, good, good.replace(**changes))


def test_what_a_padded_text_cannot_hold(zmtp: Any) -> None:
    good = zmtp.Greeting(mechanism="NULL", as_server=0)
    for mechanism in ("x" * 21, "a\0"):
        spoilt(zmtp, good, good.replace(mechanism=mechanism))


def test_values_that_spell_another_message(zmtp: Any) -> None:
    """A command whose name is still open must not be one that has a name of its own."""
    good = zmtp.Command("HELLO", b"")
    assert octets(zmtp, batch_of(zmtp, [good])) == [good.encode()]
    spoilt(zmtp, good, zmtp.Command("READY", b""))


def test_a_frame_behind_one_that_is_left_out(norfab: Any) -> None:
    good = norfab.Disconnect(header="NFPW01", service=None, body=None)
    spoilt(norfab, good, good.replace(body=b"b"))
    spoilt(norfab, good, good.replace(header="NFPC01"))


def test_two_readings_of_one_frame(cmb1_json: Any) -> None:
    good = cmb1_json.Request(topic="a", payload=b"b")
    spoilt(cmb1_json, good, good.replace(json="{}"))


def test_flags_say_which_frames_there_are(flux: Any) -> None:
    """Columns hold the whole octet; bits that announce other frames than there are are refused, others kept."""
    good = flux.Request(topic="a", routes=None, flags=0xF4)
    (found,) = batch_of(flux, [good]).column("Request").to_pylist()
    row: dict[str, Any] = dict(found or {})
    assert row["flags"] == 0xF5

    def with_flags(flags: int) -> pa.RecordBatch:
        return pa.record_batch({"Request": pa.array([row, row | {"flags": flags}], column(flux, "Request"))})

    assert octets(flux, with_flags(0x01))[1][-1][3] == 0x01
    error = refused(flux, with_flags(0x0B))
    assert str(error) == (
        "row 1: request.flags: expected 0x01: the bits of the parts that are there, found 0x0b [Flux v1 flags]"
    )
    assert refused(flux, with_flags(0)).field == "flags"
    assert refused(flux, with_flags(256)).attributes() == refused(flux, with_flags(257)).attributes() | {
        "found": "256"
    }


def test_text_that_is_no_utf8(filemq: Any) -> None:
    """Arrow takes any octets for text when they come as a buffer."""
    reason = pa.Array.from_buffers(pa.string(), 2, pa.array([b"\xc3\xa9", b"\xc3"]).buffers())
    batch = pa.record_batch({"Wat": pa.StructArray.from_arrays([reason], ["reason"])})
    error = refused(filemq, batch)
    assert (error.row, error.message_name, error.field, error.kind) == (1, "WAT", "reason", "text")


# What a row is.


def test_rows_that_contradict_themselves(filemq: Any) -> None:
    nom, wat = column(filemq, "Nom"), column(filemq, "Wat")
    credit = pa.array([None, {"credit": 1}], nom)
    both = pa.record_batch({"Nom": credit, "Wat": pa.array([None, {"reason": "a"}], wat)})
    said = pa.record_batch({"_message": ["Nom", "Wat"], "Nom": pa.array([{"credit": 1}] * 2, nom)})
    nothing = pa.record_batch(
        {"_message": pa.array([None, "Nom"]), "Nom": pa.array([{"credit": 1}, None], nom)}
    )
    raw = pa.record_batch({"_frames": pa.array([None, [b""]], FRAMES), "Nom": credit})
    lost = pa.record_batch(
        {"_error": pa.array([None, {"kind": "tag"}]), "Nom": pa.array([{"credit": 1}, None], nom)}
    )
    for batch, field, found in (
        (both, "Wat", "Nom and Wat"),
        (said, "_message", "Wat"),
        (nothing, "_message", "Nom"),
        (raw, "_frames", "Nom and _frames"),
        (lost, "_frames", "no column"),
    ):
        error = refused(filemq, batch)
        assert (error.row, error.field, error.found) == (1, field, found)


def test_a_row_that_holds_nothing_is_null(filemq: Any) -> None:
    columns: dict[str, Any] = {"_message": pa.array([None, None], pa.string()), "Nom": pa.nulls(2)}
    batch = pa.record_batch(columns)
    assert octets(filemq, batch) == [None, None]
    assert octets(filemq, pa.record_batch({"_message": pa.nulls(2), "_frames": pa.nulls(2)})) == [None, None]
    assert octets(filemq, batch.select([])) == [None, None]
    assert octets(filemq, filemq.columns.decode(pa.array([], FRAMES))) == []


def test_a_column_of_text_says_which_message(filemq: Any) -> None:
    """`_message` may be null, or dictionary encoded; what else begins with ``_`` is not looked at."""
    said = pa.array(["Nom", None], pa.string()).dictionary_encode()
    noms = [{"credit": 1}, {"credit": 2, "_x": 1}]
    columns: dict[str, Any] = {"_note": ["x", "y"], "_message": said, "Nom": noms}
    batch = pa.record_batch(columns)
    assert octets(filemq, batch) == [filemq.Nom(1).encode(), filemq.Nom(2).encode()]


def test_unknown_columns_and_fields_are_named(filemq: Any) -> None:
    with pytest.raises(ValueError, match="no message Nomm in FILEMQ v2"):
        filemq.columns.encode(pa.record_batch({"Nomm": [{"credit": 1}]}))
    with pytest.raises(ValueError, match="column Nom has a field creditt"):
        filemq.columns.encode(one("Nom", creditt=1))
    twice = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], ["credit", "credit"])
    with pytest.raises(ValueError, match="column Nom has two fields credit"):
        filemq.columns.encode(pa.record_batch({"Nom": twice}))
    with pytest.raises(ValueError, match="two columns Nom"):
        filemq.columns.encode(pa.record_batch([twice, twice], names=["Nom", "Nom"]))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"sequence": 1.0}, "Cheezburger.sequence: integers wanted, not double"),
        ({"sequence": pa.array([Decimal("1.5")])}, r"Cheezburger.sequence: integers wanted, not decimal128\(2, 1\)"),
        ({"filename": b"f"}, "Cheezburger.filename: text wanted, not binary"),
        ({"chunk": "f"}, "Cheezburger.chunk: octets wanted, not string"),
        ({"headers": "a"}, "Cheezburger.headers: a list wanted, not string"),
        ({"headers": pa.array([["a"]])}, r"Cheezburger.headers\[\]: a struct wanted, not string"),
        ({"headers": pa.array([[{"name": 1}]])}, r"Cheezburger.headers\[\].name: text wanted, not int64"),
    ],
)  # fmt: skip
def test_types_that_hold_something_else(filemq: Any, values: dict[str, Any], words: str) -> None:
    """Told by the type alone, also where there are no rows."""
    batch = one("Cheezburger", **values)
    for rows in (batch, batch.slice(0, 0)):
        with pytest.raises(TypeError, match=words):
            filemq.columns.encode(rows)


def test_no_batch(filemq: Any) -> None:
    with pytest.raises(TypeError, match="RecordBatch or Table wanted, not list"):
        filemq.columns.encode([{"Nom": {"credit": 1}}])


# Other types, slices, chunks.


def run_ends(array: pa.Array[Any]) -> Any:
    """The same values, run-end encoded."""
    return pc.call_function("run_end_encode", [array])


def texts(*values: str | None) -> list[Any]:
    """The same texts in every type that Arrow has for them."""
    plain = pa.array(values, pa.string())
    types = (pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.large_string()))
    return [*(plain.cast(type_) for type_ in types), run_ends(plain)]


def test_texts_of_every_type(filemq: Any) -> None:
    for array in texts("", "abc", "abc", "a text that is longer than a view holds inside"):
        batch = pa.record_batch({"Wat": pa.StructArray.from_arrays([array], ["reason"])})
        assert octets(filemq, batch) == [filemq.Wat(text).encode() for text in array.to_pylist()]
        assert octets(filemq, batch.slice(1, 2)) == octets(filemq, batch)[1:3]


def test_integers_of_every_type(filemq: Any) -> None:
    signed = (
        pa.int8(),
        pa.int16(),
        pa.int32(),
        pa.int64(),
        pa.uint8(),
        pa.uint16(),
        pa.uint32(),
        pa.uint64(),
    )
    decimals = (pa.decimal32(4), pa.decimal64(9), pa.decimal128(38), pa.decimal256(60), pa.decimal128(20))
    for type_ in (*signed, *decimals, pa.dictionary(pa.int8(), pa.int64())):
        numbers = [Decimal(number) if pa.types.is_decimal(type_) else number for number in (0, 1, 127)]
        values = pa.array(numbers, type_)
        batch = pa.record_batch({"Nom": pa.StructArray.from_arrays([values], ["credit"])})
        assert octets(filemq, batch) == [filemq.Nom(number).encode() for number in (0, 1, 127)]
        assert octets(filemq, batch.slice(2)) == [filemq.Nom(127).encode()]
    for number in (-1, 2**64, 2**64 + 1, 2**200, -(2**200)):
        values = pa.array([Decimal(number)], pa.decimal256(70))
        batch = pa.record_batch({"Nom": pa.StructArray.from_arrays([values], ["credit"])})
        assert refused(filemq, batch).field == "credit"


def test_octets_of_every_type(zmtp: Any) -> None:
    plain = pa.array([b"ab", b"cd", b"ef"])
    arrays = [plain.cast(t) for t in (pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(2))]
    for array in (*arrays, plain.dictionary_encode(), run_ends(plain)):
        batch = pa.record_batch({"MessageLast": pa.StructArray.from_arrays([array], ["message_body"])})
        assert octets(zmtp, batch) == [[b"\0\x02ab"], [b"\0\x02cd"], [b"\0\x02ef"]]
        assert octets(zmtp, batch.slice(1, 1)) == [[b"\0\x02cd"]]


def test_lists_of_every_type(zre: Any) -> None:
    values = [["a", "b"], ["c", "dd"]]
    lists = [pa.list_(pa.string()), pa.large_list(pa.string()), pa.list_(pa.string(), 2)]
    for type_ in (*lists, pa.list_view(pa.string()), pa.large_list_view(pa.large_string())):
        rows = [{"version": 2, "groups": groups} for groups in values]
        hello = pa.struct([("version", pa.int8()), ("groups", type_)])
        fields: dict[str, Any] = {"sequence": 1, "endpoint": "", "status": 0, "name": "", "headers": ()}
        expected = [zre.Hello(version=2, groups=tuple(groups), **fields).encode() for groups in values]
        whole: Any = pa.array(rows, hello)
        arrays = [whole.field("version"), whole.field("groups"), pa.array([1, 1]), *[pa.array(["", ""])] * 2]
        arrays += [pa.array([0, 0]), pa.array([[], []], pa.map_(pa.string(), pa.string()))]
        names = ["version", "groups", "sequence", "endpoint", "name", "status", "headers"]
        batch = pa.record_batch({"Hello": pa.StructArray.from_arrays(arrays, names)})
        assert octets(zre, batch) == expected
        assert octets(zre, batch.slice(1)) == expected[1:]


def test_maps_are_dictionaries(filemq: Any) -> None:
    entries = [[("a", "b"), ("a", "c")], [], [("x", "")]]
    maps = pa.array(entries, pa.map_(pa.string(), pa.string()))
    fields = {"path": pa.array(["p"] * 3), "options": maps, "cache": maps}
    batch = pa.record_batch({"Icanhaz": pa.StructArray.from_arrays(list(fields.values()), list(fields))})
    expected = [filemq.Icanhaz("p", tuple(pairs), tuple(pairs)).encode() for pairs in entries]
    assert octets(filemq, batch) == expected
    assert octets(filemq, batch.slice(2, 1)) == expected[2:]


@pytest.mark.parametrize("name", PACKAGES)
def test_slices_and_the_order_of_columns(name: str) -> None:
    module = package(name, "pure")
    rows = capture(name)
    batch = module.columns.decode(pa.array(rows, FRAMES))
    expected = [rewritten(module, row) for row in rows]
    turned = batch.select(batch.schema.names[::-1])
    assert octets(module, turned) == expected
    for start, length in ((1, 3), (len(rows) // 2, 5), (len(rows) - 1, 1), (3, 0)):
        assert octets(module, turned.slice(start, length)) == expected[start : start + length]


def test_tables_come_back_in_chunks(filemq: Any) -> None:
    """Rows are counted from the start of the table."""
    batches = [batch_of(filemq, [filemq.Nom(number)] * number) for number in (2, 0, 3)]
    table = pa.Table.from_batches(batches)
    found = filemq.columns.encode(table)
    assert isinstance(found, pa.ChunkedArray)
    assert found.to_pylist() == [filemq.Nom(2).encode()] * 2 + [filemq.Nom(3).encode()] * 3
    bad = batch_of(filemq, [filemq.Nom(1), filemq.Nom(-1)])
    assert refused(filemq, pa.Table.from_batches([*batches, bad])).row == 6
    empty = filemq.columns.encode(table.slice(0, 0))
    assert (empty.type, len(empty)) == (FRAMES, 0)


@pytest.mark.parametrize("name", PACKAGES)
def test_a_capture_survives_parquet(name: str, tmp_path: Path) -> None:
    """Rows that decode and rows that do not, written by columns and read back by them."""
    module = package(name, "pure")
    rows = [*capture(name), None, [b"x"]]
    table = pa.Table.from_batches([module.columns.decode(pa.array(rows, FRAMES))])
    parquet.write_table(table, tmp_path / "capture.parquet", row_group_size=7)
    expected = [*(rewritten(module, row) for row in capture(name)), None, [b"x"]]
    assert octets(module, parquet.read_table(tmp_path / "capture.parquet")) == expected


def test_many_rows_are_written_in_portions(filemq: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns_encoding, "MOST_ROWS", 3)
    messages = [filemq.Nom(number) for number in range(10)]
    batch = batch_of(filemq, messages)
    assert octets(filemq, batch) == [message.encode() for message in messages]
    assert refused(filemq, batch_of(filemq, [*messages, filemq.Nom(-1)])).row == 10
    monkeypatch.setattr(columns_encoding, "MOST_BEFORE", 10)
    assert octets(filemq, batch) == [message.encode() for message in messages]


def test_no_array_holds_more_octets_than_it_can_count(filemq: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table's rows go into more chunks; rows of one array, and a row by itself, are refused."""
    monkeypatch.setattr(columns_encoding, "MOST_OCTETS", 25)
    messages = [filemq.Nom(number) for number in range(4)]
    batch = batch_of(filemq, messages)
    found = filemq.columns.encode(pa.Table.from_batches([batch]))
    assert [len(chunk) for chunk in found.chunks] == [2, 2]
    assert found.to_pylist() == [message.encode() for message in messages]
    error = refused(filemq, batch)
    assert (error.kind, error.found, error.row) == ("limit", "44", None)
    long = pa.Table.from_batches([batch_of(filemq, [filemq.Nom(1), filemq.Wat("x" * 30)])])
    error = refused(filemq, long)
    assert (error.kind, error.found, error.row) == ("limit", "34", 1)
