"""Columns are what the row codec says of each row, and good rows are read together: all packages, both builds."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specwire.generated.builds import PURE, find_native
from specwire.generated.columns import frames as columns_frames
from specwire.generated.columns import gathering as columns_gathering
from specwire.generated.columns import loops as columns_loops
from specwire.generated.columns import native as columns_native
from tests.examples import examples
from tests.generated import strategies
from tests.generated.agreement import mutated, truncations
from tests.generated.column_agreement import (
    FRAMES,
    assert_same_columns,
    column_build,
    counted_rows,
    row_by_row,
)
from tests.generated.hand_vectors import HAND
from tests.generated.vectors import PACKAGES, package, recorded

LONGEST = 3000
"""Octets of the longest recorded message that is cut at each of its octets."""


@pytest.fixture(params=["numpy", "compiled"], autouse=True)
def kernels(request: pytest.FixtureRequest) -> Iterator[str]:
    """Which build of the column decoder the test runs with."""
    name: str = request.param
    with column_build(name):
        yield name


def corpus(name: str) -> list[list[bytes]]:
    """The recorded messages of a package and those written by hand, good and bad."""
    return [list(v.frames) for v in [*recorded(name), *(h for h in HAND if h.package == name)]]


def short(name: str) -> list[list[bytes]]:
    return [frames for frames in corpus(name) if sum(map(len, frames)) < LONGEST]


@pytest.mark.parametrize("name", PACKAGES)
def test_recorded_messages(name: str) -> None:
    """Also the long ones, each beside all others."""
    batch = assert_same_columns(package(name), corpus(name))
    assert 0 < batch.num_rows - batch.column("_error").null_count < batch.num_rows or name in {
        "filemq",
        "zmtp",
        "zre",
    }


@pytest.mark.parametrize("name", PACKAGES)
def test_every_truncation(name: str) -> None:
    """Every frame left out, and cut at each of its octets."""
    chance = random.Random(name)
    rows = [list(cut) for frames in short(name) for cut in truncations(frames)]
    batch = assert_same_columns(package(name), chance.sample(rows, min(len(rows), 1500)))
    assert batch.column("_error").null_count < batch.num_rows


@pytest.mark.parametrize("name", PACKAGES)
def test_changed_octets(name: str) -> None:
    """Octets changed, frames exchanged: what is a message still is read together with the others."""
    chance = random.Random(name)
    messages = short(name)
    rows = [mutated(chance.choice(messages), chance) for _ in range(1000)]
    assert_same_columns(package(name), rows)


@pytest.mark.parametrize("name", PACKAGES)
@settings(max_examples=examples(12), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_messages(name: str, data: st.DataObject) -> None:
    """Any messages beside each other; none is decoded by itself."""
    module = package(name)
    rows = [m.encode() for m in data.draw(st.lists(strategies.messages(module), min_size=1, max_size=12))]
    batch = assert_same_columns(module, rows)
    assert batch.column("_error").null_count == len(rows)


@pytest.mark.parametrize("name", PACKAGES)
def test_pieces_of_any_size_are_one_batch(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows read three at a time, or as few as have no more than 100 octets: the longer ones by themselves."""
    rows = short(name)[:40] * 2
    whole = package(name).columns.decode(pa.array(rows, FRAMES))
    monkeypatch.setattr(columns_frames, "ROWS", 3)
    assert assert_same_columns(package(name), rows).equals(whole)
    monkeypatch.setattr(columns_frames, "OCTETS", 100)
    with counted_rows() as seen:
        assert package(name).columns.decode(pa.array(rows, FRAMES)).equals(whole)
    assert {tuple(frames) for frames in seen} >= {tuple(f) for f in rows if sum(map(len, f)) > 100}


@pytest.mark.parametrize("name", PACKAGES)
def test_good_rows_that_are_left_over_take_their_places(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row with many frames goes by itself; with the limit at two, almost all do, and are merged in."""
    monkeypatch.setattr(columns_frames, "FRAMES", 2)
    rows = short(name)[:100]
    with counted_rows() as seen:
        found = package(name).columns.decode(pa.array(rows, FRAMES))
    assert len(seen) >= sum(len(frames) > 2 for frames in rows)
    assert found.equals(row_by_row(package(name), rows))


def test_long_lists_of_few_rows_go_by_themselves(kernels: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows in step while there are enough of them; the last few with more entries than the rest do not hold up."""
    monkeypatch.setattr(columns_loops, "PATIENCE", 5)
    monkeypatch.setattr(columns_loops, "FEW", 3)
    module = package("libfilemq")
    rows = [
        module.Icanhaz("/", cache=tuple((f"n{i}", "v") for i in range(count))).encode()
        for count in (0, 3, 40, 4, 200, 5)
    ]
    with counted_rows() as seen:
        found = module.columns.decode(pa.array(rows, FRAMES))
    assert found.equals(row_by_row(module, rows))
    assert len(seen) == (0 if kernels == "compiled" else 2)


def test_bad_text_beside_good() -> None:
    """UTF-8 is looked at in all rows together: characters cut between two rows are bad in both."""
    module = package("filemq")

    def srsly(reason: bytes) -> list[bytes]:
        return [b"\xaa\xa3\x80" + bytes((len(reason),)) + reason]

    reasons = [
        b"a",
        b"\xc3",
        b"\xa9",
        "\u00e9".encode(),
        b"",
        b"\xe2\x82",
        b"\xac",
        b"z",
        b"\xff",
        b"\xc3\xa9\xc3",
    ]
    batch = assert_same_columns(module, [srsly(reason) for reason in reasons])
    good = [row is not None and row["reason"] for row in batch.column("Srsly").to_pylist()]
    assert good == ["a", False, False, "\u00e9", "", False, False, "z", False, False]


def test_nothing_but_bad_rows() -> None:
    rows = [[b"nothing of the kind"], [], [b""], [b"\xaa\xa3\x07"]] * 1500
    batch = assert_same_columns(package("filemq"), rows)
    assert batch.column("_message").null_count == len(rows)


def test_one_message_after_the_other_in_any_order() -> None:
    """A message that occurs in the last rows only, null in all before."""
    module = package("filemq")
    rows = [module.Hugz().encode()] * 10 + [module.Nom(5).encode(), module.Wat("w").encode()] * 3
    batch = assert_same_columns(module, rows)
    assert batch.column("Nom").null_count == 13
    assert [row and row["reason"] for row in batch.column("Wat").to_pylist()][-2:] == [None, "w"]


def test_text_beyond_what_an_array_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """2 GiB of one column are refused in words, before anything wraps around."""
    module = package("flux")
    rows = [module.Event(topic=f"topic.{i}", payload=b"x" * 10).encode() for i in range(100)]
    monkeypatch.setattr(columns_frames, "ROWS", 10)
    monkeypatch.setattr(columns_gathering, "LARGEST", 999)
    with pytest.raises(ValueError, match=r"1000 octets in one column.*pass smaller arrays"):
        module.columns.decode(pa.array(rows, FRAMES))
    assert module.columns.decode(pa.array(rows[:99], FRAMES)).num_rows == 99


def test_threads_share_a_decoder() -> None:
    module = package("filemq")
    rows = short("filemq") * 20
    whole = module.columns.decode(pa.array(rows, FRAMES))
    with ThreadPoolExecutor(4) as threads:
        batches = list(threads.map(module.columns.decode, [pa.array(rows, FRAMES)] * 8))
    assert all(batch.equals(whole) for batch in batches)


def _decoded(module: ModuleType, array: Any) -> pa.RecordBatch:
    with counted_rows() as seen:
        batch = module.columns.decode(array)
    assert not seen
    assert isinstance(batch, pa.RecordBatch)
    return batch


FORMS = {
    "large list": pa.large_list(pa.binary()),
    "large binary": pa.list_(pa.large_binary()),
    "large both": pa.large_list(pa.large_binary()),
    "fixed size list": pa.list_(pa.binary(), 2),
    "list view": pa.list_view(pa.binary()),
    "binary view": pa.list_(pa.binary_view()),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_input_in_any_arrow_type(form: pa.DataType) -> None:
    module = package("filemq")
    rows = [module.Cheezburger(i, 1, f"f{i}", 0, (("a", "b"),), b"xy").encode() for i in range(9)]
    wanted = _decoded(module, pa.array(rows, FRAMES))
    array = pa.array(rows, form)
    assert _decoded(module, array).equals(wanted)
    assert _decoded(module, array.slice(2, 5)).equals(wanted.slice(2, 5))
    chunked = pa.chunked_array([array.slice(3), array.slice(0, 0), array.slice(0, 3)])
    assert _decoded(module, chunked).equals(_decoded(module, pa.array([*rows[3:], *rows[:3]], FRAMES)))


def test_text_and_dictionaries_of_octets() -> None:
    """Frames that are valid text may have come as text; frames that repeat as a dictionary."""
    module = package("norfab_ascii")
    rows = [module.Ready("service").encode(), module.Disconnect(header="NFPB01", service="s").encode()] * 2
    wanted = _decoded(module, pa.array(rows, FRAMES))
    texts = pa.array([[frame.decode() for frame in frames] for frames in rows])
    assert _decoded(module, texts).equals(wanted)
    values = pa.array([frame for frames in rows for frame in frames]).dictionary_encode()
    offsets = pa.array([0, 4, 8, 12, 16], pa.int32())
    assert _decoded(module, pa.ListArray.from_arrays(offsets, values)).equals(wanted)


@pytest.mark.parametrize("form", [pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(22)], ids=str)
def test_plain_octets_of_protocols_with_one_frame(form: pa.DataType) -> None:
    """Each value is a message; of the others a list is wanted."""
    zmtp = package("zmtp")
    rows = [zmtp.Subscribe(b"0123456789").encode()[0] for _ in range(3)]
    array = pa.array([*rows, None, *rows], form)
    lists = pa.array([[row] for row in rows] + [None] + [[row] for row in rows], FRAMES)
    assert zmtp.columns.decode(array).equals(zmtp.columns.decode(lists))
    assert zmtp.columns.decode(array.slice(2, 3)).equals(zmtp.columns.decode(lists.slice(2, 3)))
    with pytest.raises(TypeError, match="lists of binary values are wanted, a message each; not"):
        package("flux").columns.decode(array)


@pytest.mark.parametrize(
    "array", [pa.array([1]), pa.array([[1]]), pa.array([[[b"a"]]]), pa.array([{"a": b""}])]
)
def test_what_is_no_message_at_all(array: pa.Array[Any]) -> None:
    with pytest.raises(TypeError, match="binary values"):
        package("zmtp").columns.decode(array)


@pytest.mark.parametrize("name", PACKAGES)
def test_nulls_beside_messages(name: str) -> None:
    """Null messages and null frames are not read, whatever octets lie behind them."""
    messages = [frames for frames in short(name) if frames][:20]
    rows: list[Any] = [*messages, None, [None], [*messages[0], None], [], *messages]
    batch = assert_same_columns(package(name), rows)
    first = len(messages)
    assert batch.column("_frames").to_pylist()[first : first + 4] == [None, [None], [*messages[0], None], []]
    only_nulls = package(name).columns.decode(pa.nulls(3))
    assert only_nulls.equals(row_by_row(package(name), [None, None, None]))


def test_octets_behind_a_null_are_nobodys_message() -> None:
    module = package("filemq")
    values = pa.array(module.Hugz().encode() * 3, pa.binary())
    lists = pa.ListArray.from_arrays(
        pa.array([0, 1, 2, 3], pa.int32()), values, mask=pa.array([False, True, False])
    )
    batch = module.columns.decode(lists)
    assert batch.column("_message").to_pylist() == ["Hugz", None, "Hugz"]
    assert batch.column("_error").to_pylist()[1]["kind"] == "frames"


def test_kernels_of_another_version_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an older specwire left compiled, and what the user does not want."""
    source = Path(columns_native.__file__).with_name("kernels.pyx").read_text(encoding="utf-8")
    assert f'\nBUILD = "{columns_native.BUILD}"\n' in source
    monkeypatch.delenv(PURE, raising=False)
    compiled = cast(Any, SimpleNamespace(BUILD=columns_native.BUILD))
    monkeypatch.setitem(sys.modules, "specwire.generated.columns.kernels", compiled)
    module = columns_native.__name__.replace("native", "kernels")
    assert find_native(module, columns_native.BUILD) is compiled
    monkeypatch.setattr(compiled, "BUILD", "0")
    assert find_native(module, columns_native.BUILD) is None
    monkeypatch.setattr(compiled, "BUILD", columns_native.BUILD)
    monkeypatch.setenv(PURE, "1")
    assert find_native(module, columns_native.BUILD) is None
