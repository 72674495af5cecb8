"""A watch whose Spark is behind a Connect server: tables are made by its Spark, alerts are found here."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path

import pyarrow.dataset as ds
import pytest

from specwire.runtime.spark.live.conversations import Rules
from specwire.runtime.spark.live.watch import ROUNDS_FILE, watch
from specwire.runtime.spark.live.work import Listener, Watch
from specwire.runtime.spark.pipeline.manifest import Asked
from specwire.runtime.spark.pipeline.request import Request
from specwire.runtime.spark.pipeline.store import Store
from specwire.runtime.spark.session.opening import open_session
from specwire.runtime.spark.session.target import Target
from tests.runtime.spark.captures import ICANHAZ_OK, NOM, OHAI, OHAI_OK, SHORT_NOM
from tests.runtime.spark.cluster.servers import Server
from tests.runtime.spark.growing import add_segment

pytestmark = [pytest.mark.spark, pytest.mark.slow]


class Seen(Listener):
    """Notes alerts that are in their table."""

    def __init__(self) -> None:
        self.alerts: list[tuple[object, object]] = []

    def on_alert(self, alert: Mapping[str, object]) -> None:
        self.alerts.append((alert["kind"], alert["seq"]))


def test_a_capture_is_watched_behind_a_server(server: Server, tmp_path: Path) -> None:
    """Each message is in the tables once, though what was reached is lost in between; alerts are stored and told once."""
    capture, out = tmp_path / "capture", tmp_path / "out"
    add_segment(capture, 0, [("C", OHAI), ("S", OHAI_OK)], first=0)
    add_segment(capture, 1, [("S", ICANHAZ_OK)], first=2)
    seen = Seen()

    def watch_once(rules: Rules | None) -> None:
        request = Watch(Request(capture, Asked(layers=("typed",))), out, rules=rules, once=True)
        with open_session(Target(remote=server.url)) as spark:
            watch(spark, request, threading.Event(), listener=seen)

    watch_once(Rules(silent_s=9999.0))
    assert seen.alerts == [("violation", 2)]
    (out / "live" / ROUNDS_FILE).unlink()
    add_segment(capture, 2, [("C", NOM), ("C", SHORT_NOM)], first=3)
    watch_once(None)
    rows = Store(out).manifest.rows
    typed = {table.split("/")[2]: count for table, count in rows.items() if count and "typed/" in table}
    assert typed == {"Ohai": 1, "OhaiOk": 1, "IcanhazOk": 1, "Nom": 1, "_errors": 1}
    (stored,) = ds.dataset(out / "alerts", partitioning="hive").to_table().to_pylist()
    assert (stored["kind"], stored["seq"], stored["message"]) == ("violation", 2, "IcanhazOk")
    assert len(seen.alerts) == 1
