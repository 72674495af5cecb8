"""The README's ticker from its specification to SQL: imported, generated, captured, decoded on Spark."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow.dataset as ds
import pytest

from tests.docs.page import commands
from tests.docs.session import first_words, fits, open_shell
from tests.spark_session import Command
from tests.walk import section

pytestmark = pytest.mark.spark


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The working directory of the reader's shell, which is that of this process too."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path / "work"
    for name in [name for name in sys.modules if name.partition(".")[0] == "wire"]:
        del sys.modules[name]


def test_the_ticker_is_typed_from_specification_to_sql(
    command: Command,
    tmp_path: Path,
    work: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Word by word; what needs Spark uses the session of the tests, and `make walk` one of its own.

    Other engines read the price that no signed integer of 64 bits holds.
    """
    (block,) = (block for block in section("Your own protocol as tables") if block.language == "console")
    record, pipeline, query = commands(block)
    with open_shell(tmp_path) as shell:
        typed = [
            shell.run_block(one)
            for one in section("A specification becomes a package")
            if one.language == "console"
        ]
        shell.do(record, block, 0)
    assert sum(typed) >= 3

    monkeypatch.chdir(work)
    ran = command(*first_words(pipeline.text)[1:])
    assert ran.status == 0, ran.err
    assert fits(pipeline.output, ran.out.splitlines()), ran.out

    # Java has a working directory of its own.
    program = query.text.partition("\n")[2].removesuffix("END").replace("`prices/", f"`{work}/prices/")
    exec(compile(program, "README.md", "exec"), {})  # noqa: S102
    shown = capfd.readouterr().out
    assert fits(query.output, shown.splitlines()), shown

    quotes = work / "prices/typed/ticker/Quote"
    prices = [Decimal(1250), Decimal(9223372036854775808)]
    assert set(ds.dataset(quotes, partitioning="hive").to_table()["price"].to_pylist()) == set(prices)
    sql = f"select price from read_parquet('{quotes}/*/*.parquet') order by 1"
    assert [row[0] for row in duckdb.execute(sql).fetchall()] == prices
