"""NORFAB as it is deployed: the same jobs, with streams of file chunks beside them."""

from __future__ import annotations

from specwire.runtime.spark.answers.protocols import norfab

PARTICULARS = norfab.PARTICULARS._replace(
    topics={**norfab.TOPICS, "StreamClient": "service", "PutClient": "service"}
)
