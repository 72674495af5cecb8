"""What the test of a cluster runs there: look at the executors' Python, then the pipeline, then the Java decoders.

    python cluster_job.py MASTER PACKAGE CAPTURE OUT LAYERS

It is a program of its own because its session is. It writes what it found to standard output as JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from specwire.runtime.capture.segments import list_files
from specwire.runtime.spark.cluster.package import read_package
from specwire.runtime.spark.decoding.decode import decode
from specwire.runtime.spark.pipeline.advance import advance
from specwire.runtime.spark.pipeline.manifest import Asked
from specwire.runtime.spark.pipeline.request import Request
from specwire.runtime.spark.pipeline.store import Store
from specwire.runtime.spark.reading.capture import read_capture
from specwire.runtime.spark.session.executors import check_shared
from specwire.runtime.spark.session.opening import open_session
from specwire.runtime.spark.session.target import Target

# A module that runs as a program reaches executors by value; one of the tests' own they could not import.


def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Report where an executor's modules come from."""
    import msgspec
    import numpy

    import specwire
    from specwire.generated.filemq import columns

    files = [module.__file__ for module in (msgspec, numpy, pa, specwire, columns)]
    seen = {"files": files, "path": sys.path}
    for _ in batches:
        yield pa.RecordBatch.from_pydict({"seen": [json.dumps(seen)]})


def main() -> None:
    """Do all of it in one session."""
    master, package, capture, out = sys.argv[1], *map(Path, sys.argv[2:5])
    asked = Asked(layers=tuple(sys.argv[5].split(",")))
    target = Target(master=master, package=package)
    segments = list_files(capture)
    with open_session(target) as spark:
        seen = spark.range(0, 2, 1, 2).mapInArrow(look, "seen string").collect()
        check_shared(spark, target, segments, out)
        summary = advance(spark, Store(out), segments, Request(capture, asked, backend="arrow"))
        assert summary is not None
        found: dict[str, Any] = {
            "executors": [json.loads(row["seen"]) for row in seen],
            "shuffle": spark.conf.get("spark.sql.shuffle.partitions"),
            "messages": summary.messages,
            "undecoded": summary.undecoded,
        }
        if read_package(package).jar is not None:
            decoded = decode(read_capture(spark, capture), "filemq", backend="jvm")
            (row,) = decoded.selectExpr("count(*)", "count_if(_message is null)").collect()
            found["java"] = {"messages": row[0], "undecoded": row[1]}
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
