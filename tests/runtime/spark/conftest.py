"""Fixtures of the Spark tests."""

from __future__ import annotations

from tests.spark_session import command, spark

__all__ = ["command", "spark"]
