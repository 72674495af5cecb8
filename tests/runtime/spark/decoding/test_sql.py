"""Decoding by SQL: what the text alone gives, and rows that are easily taken for good ones.

That every vector, truncation and mutation gives the rows of the codec is `test_backends`' part.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from specwire.generated import cmb1, flux, libfilemq, zre
from specwire.generated.errors import DecodeError
from specwire.generated.flux.sql import EXPRESSIONS
from specwire.runtime.spark.decoding.backends import find_backend
from specwire.runtime.spark.decoding.decode import decode
from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.reading.capture import CAPTURE
from specwire.runtime.spark.session.failures import describe_failure

pytestmark = pytest.mark.spark

Frames = Sequence[bytes | None] | None

HEADER = bytes.fromhex("8e010108 00000001 80000000 ffffffff 00000002".replace(" ", ""))
"""A request's: route but neither topic nor payload; user 1, roles 0x80000000, any node, matchtag 2."""

TEXTS = (
    b"", b"kvs.get", b"kvs.get\0", b"\0", b"kvs\0get", b"a\0\0", "köln".encode(), "\U0010ffff".encode(), b"\xff", b"\x80",
    b"\xc3", b"\xc0\x80", b"\xc1\xbf", b"\xe0\x80\xaf", b"\xe0\x9f\xbf", b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xed\x9f\xbf",
    b"\xf0\x80\x80\xaf", b"\xf0\x8f\xbf\xbf", b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xf8\x88\x80\x80\x80", b"\xef\xbb\xbfa",
    b"\xef\xbf\xbf", b"a\xe2\x82", b"\xe2\x82\xacb\xc3",
)  # fmt: skip
"""Texts with NUL, and octets that are nearly UTF-8: overlong, surrogates, beyond the last character, cut off."""


def captured(spark: SparkSession, rows: Sequence[Frames]) -> DataFrame:
    """Return messages as a capture has them, numbered by `seq`."""
    noted = (None, 0, "p", "t", "c", "C", None)
    return spark.createDataFrame(
        [
            (None, 0, seq, *noted[2:], None if frames is None else list(frames))
            for seq, frames in enumerate(rows)
        ],
        CAPTURE,
    )


def collect(decoded: DataFrame) -> list[dict[str, object]]:
    """Return rows in the order that they were given in, but what was noted."""
    rows = [row.asDict(recursive=True) for row in decoded.orderBy("seq").collect()]
    noted = {*CAPTURE.fieldNames(), "octets"}
    return [{name: value for name, value in row.items() if name not in noted} for row in rows]


def test_the_text_alone_decodes_a_view(spark: SparkSession) -> None:
    """The values are those of the octets written above; whoever has a table of frames needs no Python."""
    rows: list[Frames] = [[b"rank1", b"f1", b"", HEADER], [HEADER], [b"", HEADER[:-1]], None]
    captured(spark, rows).createOrReplaceTempView("sql_captured")
    found = spark.sql(EXPRESSIONS.query("sql_captured")).orderBy("seq").collect()
    assert [row["_message"] for row in found] == ["Request", None, None, None]
    assert found[0]["Request"].asDict() == {
        "routes": ["rank1", "f1"], "topic": None, "payload": None, "flags": 8, "userid": 1, "rolemask": 1 << 31,
        "nodeid": 0xFFFFFFFF, "matchtag": 2,
    }  # fmt: skip
    assert [row["_frames"] and len(row["_frames"]) for row in found] == [None, 1, 2, None]
    assert [row["Response"] for row in found] == [None] * 4
    assert found[0]["frames"] == [b"rank1", b"f1", b"", HEADER]


def test_texts_are_held_to_what_python_takes_for_utf_8(spark: SparkSession) -> None:
    """As a topic, as one of two routes, and split between two routes that are characters only together."""
    with_topic = HEADER[:3] + b"\x09" + HEADER[4:]
    rows: list[Frames] = [[b"", text, with_topic] for text in TEXTS]
    rows += [[b"f1", text, b"", HEADER] for text in TEXTS]
    rows += [
        [b"\xc3", b"\xa9", b"", HEADER],
        [b"f1", None, b"", HEADER],
        [None, b"", HEADER],
        [b"", None, with_topic],
    ]
    found = collect(decode(captured(spark, rows), "flux", "sql"))
    assert found == collect(decode(captured(spark, rows), "flux", "python"))
    good = [row["_message"] == "Request" for row in found]
    assert good == [_decodes(frames) for frames in rows]
    assert sum(good[: len(TEXTS)]) == 9, (
        "of the topics: the first four, two with other letters, and three of the last"
    )


def _decodes(frames: Frames) -> bool:
    try:
        flux.codec.decode(list(frames or ()))  # type: ignore[arg-type]
    except (DecodeError, TypeError):
        return False
    return True


def test_numbers_are_unsigned_at_both_ends(spark: SparkSession) -> None:
    """Four octets, eight, and one behind a text, each at its least and its most."""
    most = 2**64 - 1
    nom = [
        libfilemq.Nom(credit=credit, sequence=most - credit).encode()
        for credit in (0, 2**63 - 1, 2**63, most)
    ]
    noms = collect(decode(captured(spark, nom), "libfilemq", "sql"))
    assert [(row["Nom"]["credit"], row["Nom"]["sequence"]) for row in noms] == [  # type: ignore[index]
        (0, most), (2**63 - 1, 2**63), (2**63, 2**63 - 1), (most, 0),
    ]  # fmt: skip
    join = [zre.Join(version=255, sequence=65535, group="g" * size, status=255).encode() for size in (0, 255)]
    joins = collect(decode(captured(spark, join), "zre", "sql"))
    assert [row["Join"] for row in joins] == [
        {"version": 255, "sequence": 65535, "group": "g" * size, "status": 255} for size in (0, 255)
    ]


def test_each_bit_of_a_number_is_where_it_was(spark: SparkSession) -> None:
    """Numbers of four octets are found by their hash; of any other hash they would be other numbers."""
    bits = [1 << bit for bit in range(32)]
    sent = [
        (bit, 0xFFFFFFFF ^ bit, (0x9E3779B9 * bit) % 2**32, 0xFFFFFFFF - 7 * n) for n, bit in enumerate(bits)
    ]
    head = bytes.fromhex("8e010100")
    rows = [[head + b"".join(number.to_bytes(4, "big") for number in numbers)] for numbers in sent]
    found = [row["Request"] for row in collect(decode(captured(spark, rows), "flux", "sql"))]
    names = ("userid", "rolemask", "nodeid", "matchtag")
    assert [tuple(row[name] for name in names) for row in found] == sent  # type: ignore[index]
    flags = [[head[:3] + bytes([flags]) + rows[0][0][4:]] for flags in range(0, 256, 16)]
    found = [row["Request"] for row in collect(decode(captured(spark, flags), "flux", "sql"))]
    assert [row["flags"] for row in found] == list(range(0, 256, 16))  # type: ignore[index]


def test_frames_that_are_octets_are_never_read_as_text(spark: SparkSession) -> None:
    """CMB1's routes may be any octets; a null among them is no message."""
    sent = cmb1.Request(
        routes=(b"\xff\x00", b"\x00"), topic="a.b", payload=b"\xc0", nodeid=1, matchtag=2
    ).encode()
    rows: list[Frames] = [sent, [None, *sent]]
    good, bad = collect(decode(captured(spark, rows), "cmb1", "sql"))
    assert good["Request"]["routes"] == [b"\xff\x00", b"\x00"]  # type: ignore[index]
    assert bad["_message"] is None and bad["_error"] is not None and bad["_frames"] == [None, *sent]


def test_python_is_asked_once_whatever_is_done_with_the_rows(spark: SparkSession) -> None:
    """A filter on a decoded column does not decode a second time below."""
    assert plan_of(spark, "zre", "Join.group", "_message = 'Join'").count("ArrowEvalPython") == 1


def test_what_waits_for_python_is_decoded(spark: SparkSession) -> None:
    """Neither the frames' pieces nor what was found on the way to them are queued beside the structs."""
    above, below = plan_of(spark, "zre", "*").split("ArrowEvalPython", 1)
    assert "_sql_" in above and not re.findall(r"_sql_(?!message|left)\w+", above)
    assert "Join" in below and "_sql_size" in below


@pytest.mark.parametrize("protocol", ["cmb1", "cmb1_json", "flux", "norfab", "norfab_ascii"])
def test_python_is_not_asked_where_sql_covers_all(spark: SparkSession, protocol: str) -> None:
    """Errors stand in a step of their own, which is not compiled together with the decoding: no `*` before it."""
    plan = plan_of(spark, protocol, "*")
    above, below = [line for line in plan.splitlines() if "Project" in line][:2]
    assert "zip_with(" in above and "zip_with(" not in below
    assert not re.search(r"\*\(\d+\) Project", above) and "Python" not in plan


def test_rows_with_errors_are_dropped_or_named(spark: SparkSession) -> None:
    """What is done with errors is done on the expression, which Spark moves below the rows that are left."""
    rows = captured(spark, [[b"", HEADER], [b"", HEADER[:-1]], [HEADER]])
    kept = decode(rows, "flux", "sql", mode="DROPMALFORMED").orderBy("seq").collect()
    assert [row["seq"] for row in kept] == [0] and kept[0]["_message"] == "Request"
    with pytest.raises(PySparkException) as caught:
        decode(rows.where("seq = 1"), "flux", "sql", mode="FAILFAST").collect()
    fault = "request.matchtag at octet 16 in frame 1: expected 4 octets, found 3 [Flux v1 matchtag]"
    assert fault in describe_failure(caught.value)


def test_errors_say_what_the_codec_says(spark: SparkSession) -> None:
    """What is found is shown in quotes up to 40 octets, in hexadecimal up to 16; a text of NUL alone is no route."""
    odd = [
        b"N",
        b"NF",
        b"NFP",
        b"NFPC01'\\",
        b"x" * 40,
        b"x" * 41,
        b"\xff" * 16,
        b"\xff" * 17,
        b"a\nb",
        b"abc\n",
    ]
    rows: list[Frames] = [[b"", one, b"\x04"] for one in odd]
    rows += [[b"", b"NFPC01", one] for one in odd]
    rows += [[one, b"NFPC01", b"\x04", b"s", b"t", b"u", b"b"] for one in odd]
    rows += [[b"", b"NFPW01", b"\x04"], [b""], [], None, [b"", None, b""], [b"", b"NFPC01", b"\x04", b"s"]]
    rows += [[b"", b"NFPC01", b"\x04", *texts] for texts in ([b"\xff"], [b"s", b"a\xe2\x82"], [b""] * 3)]
    assert_errors(spark, "norfab", rows)


def test_errors_in_front_of_a_header_say_what_the_codec_says(spark: SparkSession) -> None:
    """Flags that announce what is not there, or what the message has not; and frames that are too many."""
    heads = [HEADER[:2] + bytes([number, flags]) + HEADER[4:] for number in (1, 8, 3) for flags in range(16)]
    rows: list[Frames] = [
        [*front, head] for head in heads for front in ([], [b"a"], [b"", b"b"], [b"", b"", b""])
    ]
    rows += [[HEADER[:size]] for size in range(20)]
    rows += [[b"", HEADER + b"x"], [b"", HEADER + b"xy"], [b"\0", b"", HEADER], [b"a", b"\0\0", b"", HEADER]]
    rows += [[b"r"] * 65_535 + [HEADER], [b"r"] * 65_536 + [HEADER], [b"f" * 100_000 + b"\xff", b"", HEADER]]
    assert_errors(spark, "flux", rows)


def assert_errors(spark: SparkSession, protocol: str, rows: list[Frames]) -> None:
    """Check that there are errors, and that they are those of the row codec."""
    found = collect(decode(captured(spark, rows), protocol, "sql"))
    assert sum(row["_error"] is not None for row in found) > len(rows) // 2
    for mine, other in zip(found, collect(decode(captured(spark, rows), protocol, "python")), strict=True):
        assert mine == other


def plan_of(spark: SparkSession, protocol: str, columns: str, condition: str = "true") -> str:
    """Return the plan of a query on decoded rows."""
    decode(captured(spark, [[HEADER]]), protocol, "sql").createOrReplaceTempView("sql_decoded")
    query = f"SELECT {columns} FROM sql_decoded WHERE {condition}"
    return str(spark.sql(f"EXPLAIN {query}").collect()[0][0])


def test_a_protocol_that_sql_does_not_cover_is_refused(spark: SparkSession) -> None:
    with pytest.raises(InputError, match="no message of zmtp is covered by SQL expressions"):
        find_backend("sql", spark, "zmtp")
