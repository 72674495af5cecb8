"""The README's ticker from its specification to SQL: imported, generated, captured, decoded on Spark."""

from __future__ import annotations

import os
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow.dataset as ds
import pytest

from specwire.runtime.spark.session.installed_java import find_java
from tests.conftest import QUICK_SPARK
from tests.docs.session import SCRIPTS, open_shell
from tests.walk import section

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.mark.skipif(find_java() is None, reason="Spark needs Java")
def test_the_ticker_is_typed_from_specification_to_sql(tmp_path: Path) -> None:
    """Word by word in one shell; other engines read the price that no signed integer of 64 bits holds."""
    with open_shell(tmp_path, SCRIPTS, **{name: os.environ[name] for name in QUICK_SPARK}) as shell:
        for title in ("A specification becomes a package", "Your own protocol as tables"):
            typed = sum(shell.run_block(block) for block in section(title) if block.language == "console")
            assert typed >= 3
    quotes = tmp_path / "work/prices/typed/ticker/Quote"
    prices = [Decimal(1250), Decimal(9223372036854775808)]
    assert set(ds.dataset(quotes, partitioning="hive").to_table()["price"].to_pylist()) == set(prices)
    query = f"select price from read_parquet('{quotes}/*/*.parquet') order by 1"
    assert [row[0] for row in duckdb.execute(query).fetchall()] == prices
