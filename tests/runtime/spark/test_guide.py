"""docs/tutorials/tables.md: its command and its queries, in the Spark session that all tests share."""

from __future__ import annotations

import re
from contextlib import nullcontext
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from specwire.generated import filemq
from specwire.runtime.capture import Tap
from specwire.runtime.cli import main as root
from specwire.runtime.spark.pipeline import advance as running
from tests.docs.page import blocks, commands
from tests.docs.session import ROOT, first_words

GUIDE = ROOT / "docs/tutorials/tables.md"
THIS = "tests/runtime/spark/test_guide.py"


@pytest.mark.spark
def test_guide(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the guide says is in the folder is there, and its queries find the file that was sent."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(running, "open_session", lambda *_: nullcontext(spark))
    write_capture(tmp_path / "captures")
    command, queries = (block for block in blocks(GUIDE) if block.note("by") == THIS)
    (shown,) = commands(command)
    with pytest.raises(SystemExit) as end:
        root.main(first_words(shown.text)[1:])
    assert not end.value.code, capsys.readouterr().err

    for name in re.findall(r"^\| `([^`]*)`", GUIDE.read_text(encoding="utf-8"), re.MULTILINE):
        assert (tmp_path / "tables" / name.removesuffix("/…")).exists(), name

    # Java has a working directory of its own.
    text = queries.text.replace('"tables', f'"{tmp_path}/tables')
    names: dict[str, object] = {"spark": spark}
    capsys.readouterr()
    exec(compile(text, GUIDE.name, "exec"), names)  # noqa: S102
    assert re.search(r"\|/a\.txt\s*\|complete\|6\s*\|", capsys.readouterr().out)


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
