"""docs/tutorials/tables.md: its command and its queries, in the Spark session that all tests share."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from specwire.generated import filemq
from specwire.runtime.capture import Tap
from tests.docs.page import blocks, commands
from tests.docs.session import ROOT, first_words
from tests.spark_session import Command

GUIDE = ROOT / "docs/tutorials/tables.md"
THIS = "tests/runtime/spark/test_guide.py"


@pytest.mark.spark
def test_guide(
    spark: SparkSession,
    command: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """What the guide says is in the folder is there, and its queries find the file that was sent."""
    monkeypatch.chdir(tmp_path)
    write_capture(tmp_path / "captures")
    pipeline, queries = (block for block in blocks(GUIDE) if block.note("by") == THIS)
    (shown,) = commands(pipeline)
    ran = command(*first_words(shown.text)[1:])
    assert ran.status == 0, ran.err

    for name in re.findall(r"^\| `([^`]*)`", GUIDE.read_text(encoding="utf-8"), re.MULTILINE):
        assert (tmp_path / "tables" / name.removesuffix("/…")).exists(), name

    # Java has a working directory of its own.
    text = queries.text.replace('"tables', f'"{tmp_path}/tables')
    names: dict[str, object] = {"spark": spark}
    exec(compile(text, GUIDE.name, "exec"), names)  # noqa: S102
    assert re.search(r"\|/a\.txt\s*\|complete\|6\s*\|", capfd.readouterr().out)


def write_capture(folder: Path) -> None:
    """Record what a server and its client say about one file."""
    said = (
        ("C", filemq.Ohai()),
        ("S", filemq.OhaiOk()),
        ("C", filemq.Icanhaz(path="/")),
        ("S", filemq.IcanhazOk()),
        ("C", filemq.Nom(credit=1000)),
        ("S", filemq.Cheezburger(1, 1, "/a.txt", 0, (("size", "6"),), b"hello\n")),
        ("S", filemq.Cheezburger(2, 1, "/a.txt", 6, (("size", "6"),), b"")),
    )
    with Tap.open(folder, protocol="filemq", name="server", edition="2") as tap:
        for sender, message in said:
            tap.record(sender=sender, peer="00aa", conversation="1", frames=message.encode())
