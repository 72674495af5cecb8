"""A large message goes through a run as its user begins it, with the default memory of a Spark driver.

`SPECWIRE_LARGE_FRAME_MIB` is its size; `make soak` takes 100. By default the test is skipped, because it starts Spark:
`test_bad_input` has a message of 16 MiB.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from specwire.generated import flux
from specwire.runtime.capture.link import Captured
from specwire.runtime.capture.segments import Source, build_table, write_segment
from specwire.runtime.spark.pipeline.store import Store
from specwire.runtime.spark.session.target import find_java
from tests.conftest import QUICK_SPARK
from tests.runtime.spark.captures import BEGUN

pytestmark = [
    pytest.mark.slow,
    pytest.mark.spark,
    pytest.mark.skipif(find_java() is None, reason="Spark needs Java 17 or newer"),
]

COMMAND = [sys.executable, "-P", "-m", "specwire.runtime.cli.main", "pipeline", "run"]
LARGE = int(os.environ.get("SPECWIRE_LARGE_FRAME_MIB", "0")) << 20
SMALL = 500
LIMIT_S = 600


@pytest.mark.skipif(not LARGE, reason="`make soak` does it (SPECWIRE_LARGE_FRAME_MIB=100)")
def test_a_large_message_is_decoded_as_others(tmp_path: Path) -> None:
    """Its payload does not compress, and many small messages stand before and after it.

    With Java's parallel collector 100 MiB needed more memory than the driver has by default.
    """
    small = [b"{}"] * SMALL
    payloads = [*small, random.Random(1).randbytes(LARGE), *small]
    capture, out = tmp_path / "capture", tmp_path / "out"
    capture.mkdir()
    messages = (flux.Request(topic="kvs.put", payload=payload) for payload in payloads)
    rows = [
        Captured(BEGUN + number, number, number, "c", "C", "x", tuple(message.encode()), 0)
        for number, message in enumerate(messages)
    ]
    write_segment(capture, "a-1-0-000000.parquet", build_table(rows, Source("a-1-0", "flux", "1"), 0))
    options = ["--layers", "frames,typed", "--master", "local[2]", "--json"]
    ran = subprocess.run(
        [*COMMAND, "--capture", str(capture), "--out", str(out), *options],
        # The collector of garbage is that of a user, not that of tests.
        env={name: value for name, value in os.environ.items() if name not in QUICK_SPARK},
        capture_output=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr.decode()
    assert json.loads(ran.stdout)["totals"]["typed"] == len(payloads)
    found: dict[int, str] = {}
    for path in Store(out).files("typed/flux/Request"):
        for batch in pq.ParquetFile(path).iter_batches(1, columns=["seq", "payload", "payload_json"]):
            for row in batch.to_pylist():
                found[row["seq"]] = hashlib.sha256(row["payload"]).hexdigest()
                assert (row["payload_json"] is None) == (len(row["payload"]) > 2)
    assert found == {number: hashlib.sha256(payload).hexdigest() for number, payload in enumerate(payloads)}
