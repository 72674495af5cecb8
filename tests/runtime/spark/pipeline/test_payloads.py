"""Payloads with schemas of their own in the typed tables of a folder: columns, and what a folder does not take."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from specwire.generated import flux
from specwire.runtime.capture.segments import list_files
from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.pipeline.advance import advance, run
from specwire.runtime.spark.pipeline.commit import begin
from specwire.runtime.spark.pipeline.manifest import Asked, read_manifest
from specwire.runtime.spark.pipeline.payloads import PayloadColumn, payloads_of, read_profiles
from specwire.runtime.spark.pipeline.request import Request, check_same
from specwire.runtime.spark.pipeline.store import Store
from tests.runtime.spark import captures

ALLOC = {
    "properties": {
        "id": {"type": "integer"},
        "hosts": {"type": "array", "items": {"type": "string"}},
        "user": {"properties": {"name": {"type": "string"}}},
    }
}
ALLOC_TYPE = pa.struct(
    [("id", pa.int64()), ("hosts", pa.list_(pa.string())), ("user", pa.struct([("name", pa.string())]))]
)


def write_profile(folder: Path, *topics: str, schema: Any = ALLOC, name: str = 'name = "flux"') -> Path:
    """Write a profile that gives each topic the same schema."""
    folder.mkdir(exist_ok=True)
    (folder / "alloc.schema.json").write_text(json.dumps(schema))
    tables = (f'[[payload]]\ntopic = "{topic}"\njson-schema = "alloc.schema.json"\n' for topic in topics)
    profile = folder / "profile.toml"
    profile.write_text("\n".join([name, *tables]))
    return profile


def request(topic: str, payload: bytes) -> captures.Message:
    """A request as a client sends it."""
    return "C", flux.Request(topic=topic, payload=payload, matchtag=1).encode()


def write(capture: Path, tap: str, *messages: captures.Message) -> None:
    """Write one segment."""
    captures.write_capture(capture, messages, tap=tap, protocol="flux")


@pytest.mark.spark
def test_typed_tables_have_the_columns(spark: SparkSession, tmp_path: Path) -> None:
    """Of the messages that can have such payloads, in each run; other readers see them, too."""
    capture, out = tmp_path / "capture", tmp_path / "out"
    columns = read_profiles([write_profile(tmp_path / "p", "sched.alloc")])
    asked = Request(capture, Asked(layers=("typed",), payloads=columns))
    write(
        capture,
        "a-1-0",
        request("sched.alloc", b'{"id": 7, "hosts": ["a", "b"], "user": {"name": "ann"}}\0'),
        request("sched.alloc", b'{"id": "7"}'),
        request("kvs.get", b'{"id": 8}'),
        request("sched.alloc", b"[8]"),
    )
    assert advance(spark, Store(out), list_files(capture), asked)
    write(capture, "b-2-0", request("sched.alloc", b'{"hosts": []}'), request("sched.alloc", b""))
    done = advance(spark, Store(out), list_files(capture), asked)
    assert done is not None and done.totals.typed == 6
    found: list[dict[str, Any]] = []
    for path in Store(out).files("typed/flux/Request"):
        table = pq.ParquetFile(path).read(["tap", "seq", "_payload_sched_alloc"])
        assert table.schema.field("_payload_sched_alloc").type == pa.struct(
            [
                ("id", pa.int64()),
                ("hosts", pa.list_(pa.field("element", pa.string()))),
                ("user", pa.struct([("name", pa.string())])),
            ]
        )
        found += table.to_pylist()
    of_rows = {(row["tap"], row["seq"]): row["_payload_sched_alloc"] for row in found}
    assert of_rows == {
        ("a-1-0", 0): {"id": 7, "hosts": ["a", "b"], "user": {"name": "ann"}},
        ("a-1-0", 1): {"id": None, "hosts": None, "user": None},
        ("a-1-0", 2): None,
        ("a-1-0", 3): None,
        ("b-2-0", 0): {"id": None, "hosts": [], "user": None},
        ("b-2-0", 1): None,
    }
    typed = Store(out).typed(spark, "flux")
    assert "sched" in typed["Response"].schema["_payload_sched_alloc"].metadata["comment"]
    assert "_payload_sched_alloc" not in typed["Control"].columns


def begun(out: Path, columns: tuple[PayloadColumn, ...]) -> None:
    """Make a folder that was begun with these columns."""
    with begin(out) as first:
        asked = Asked(payloads=columns)
        first.commit(msgspec.structs.replace(first.before, asked=asked, answered=first.number))


def test_a_folder_keeps_its_columns(tmp_path: Path) -> None:
    """They come out of the manifest as they went in; another set is refused, the same in other words is not."""
    profile = write_profile(tmp_path / "p", "sched.alloc", "sched.*")
    capture, out = tmp_path / "capture", tmp_path / "out"
    write(capture, "a-1-0")
    columns = read_profiles([profile])
    begun(out, columns)
    assert read_manifest(out).asked.payloads == columns
    (alloc, whole) = payloads_of(columns, "flux")
    assert (alloc.column, whole.column) == ("_payload_sched", "_payload_sched_alloc")
    assert whole.type == ALLOC_TYPE
    assert payloads_of(columns, "filemq") == ()

    def ask(*profiles: Path) -> None:
        check_same(Asked(payloads=read_profiles(profiles)), read_manifest(out), out)

    said = {"description": "of an allocation", **ALLOC, "required": ["id"]}
    ask(write_profile(tmp_path / "q", "sched.*", "sched.alloc", schema=said))
    with pytest.raises(InputError, match=r"_payload_sched of flux is missing, _payload_sched_alloc of flux"):
        ask()
    with pytest.raises(InputError, match="other payload columns: _payload_sched of flux is missing; ask for"):
        ask(write_profile(tmp_path / "q", "sched.alloc"))
    with pytest.raises(InputError, match="_payload_kvs of flux is new; ask for the same or name another"):
        ask(write_profile(tmp_path / "q", "sched.alloc", "sched.*", "kvs.*"))
    with pytest.raises(
        InputError, match="_payload_sched of flux is another, _payload_sched_alloc of flux is"
    ):
        other = {"properties": {"id": {"type": "string"}}}
        ask(write_profile(tmp_path / "q", "sched.alloc", "sched.*", schema=other))
    with pytest.raises(InputError, match="other payload columns"):
        run(Request(capture), out, target="not a master")
    assert read_manifest(out).asked.payloads == columns


@pytest.mark.parametrize(
    ("profile", "sentence"),
    [
        ({"name": ""}, "it does not say whose payloads these are: add `name`"),
        ({"name": 'name = "gopher"'}, "there is no protocol 'gopher'"),
        ({"name": 'name = "zmtp"'}, "no message of .* has 'topic' and a field with JSON"),
        ({"schema": [1]}, r"alloc\.schema\.json: .*it has to be the JSON Schema of an object"),
        ({"schema": {"properties": {"id": {}, "ID": {}}}}, "_payload_a: Spark does not tell 'id' from its like"),
        (
            {"schema": {"properties": {"x": {"items": {"properties": {"b": {}, "B": {}}}, "type": "array"}}}},
            r"_payload_a\.x: Spark does not tell 'b' from its like",
        ),
        ({"schema": {"properties": {"": {}}}}, "a property has no name"),
    ],
)  # fmt: skip
def test_a_profile_that_cannot_be_used_is_one_sentence(
    tmp_path: Path, profile: dict[str, Any], sentence: str
) -> None:
    """That names the file."""
    with pytest.raises(InputError, match=sentence):
        read_profiles([write_profile(tmp_path / "p", "a", **profile)])


def test_profiles_stand_beside_each_other(tmp_path: Path) -> None:
    """Where one names a protocol the other need not be of it, but no column can be there twice."""
    nameless = write_profile(tmp_path / "p", "a", name="")
    assert [column.protocol for column in read_profiles([nameless], "flux")] == ["flux"]
    with pytest.raises(InputError, match="it is of flux, and every message is read as filemq"):
        read_profiles([write_profile(tmp_path / "q", "a")], "filemq")
    with pytest.raises(InputError, match="two payloads become the column _payload_a: give one a `name`"):
        read_profiles([write_profile(tmp_path / "q", "a"), write_profile(tmp_path / "r", "a")])
    with pytest.raises(InputError, match=r"it has no \[\[payload\]\]"):
        read_profiles([write_profile(tmp_path / "q")])
    with pytest.raises(InputError, match=r"nosuch\.toml cannot be read: No such file"):
        read_profiles([tmp_path / "nosuch.toml"])
