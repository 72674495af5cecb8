"""docs/reference/spark.md: its examples run, one after the other, on a capture of one Flux request."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from specwire.runtime.spark.decoding.options import KNOWN
from specwire.runtime.spark.reading.source import OPTIONS
from tests.runtime.spark import captures

DOCUMENT = Path(__file__).parents[3] / "docs" / "reference" / "spark.md"


@pytest.mark.spark
def test_examples_run(spark: SparkSession, tmp_path: Path) -> None:
    """What they assert holds."""
    (tmp_path / "captures").mkdir()
    messages = [("C", captures.FLUX_ATTR_GET)]
    captures.write_capture(tmp_path / "captures" / "today", messages, protocol="flux")
    text = DOCUMENT.read_text(encoding="utf-8")  # Java has a working directory of its own
    for name in ("captures/today", "decoded"):
        text = text.replace(f'"{name}"', f'"{tmp_path / name}"')
    names: dict[str, object] = {"spark": spark}
    blocks = re.findall(r"```py\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 5
    for block in blocks:
        exec(compile(block, DOCUMENT.name, "exec"), names)  # noqa: S102


@pytest.mark.spark
def test_examples_of_columns_run(spark: SparkSession) -> None:
    """Those of docs/how-to/columns.md; the one of a stream is in `test_column`."""
    text = (DOCUMENT.parents[1] / "how-to" / "columns.md").read_text(encoding="utf-8")
    blocks = re.findall(r"test_document.py -->\n```py\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 3
    names: dict[str, object] = {"spark": spark}
    for block in blocks:
        exec(compile(block, "columns.md", "exec"), names)  # noqa: S102


def test_every_option_is_in_the_table() -> None:
    """Those of `decode`, and those of the format."""
    text = DOCUMENT.read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`[^|]*`) \|", text, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert {*KNOWN, *OPTIONS} - {"mode"} <= named
