"""The tap and its writer process: nothing waits, nothing is lost unsaid, a kill costs at most a second."""

from __future__ import annotations

import logging
import os
import resource
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from specwire.generated import filemq
from specwire.runtime.capture import CaptureError, Limits, Recorder, Tap
from specwire.runtime.capture.policy import Payload
from specwire.runtime.capture.retention import Retention
from specwire.runtime.capture.segments import find_segments, read_segments
from tests.runtime.capture.folders import put_segment
from tests.runtime.spark.captures import CHEEZBURGER

NOM = bytes.fromhex("aaa3070000010000000000")
DEADLINE_S = 60.0


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait for a condition, at most `DEADLINE_S`."""
    end = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < end, "the condition did not come true in time"
        time.sleep(0.02)


def record(tap: Recorder, count: int = 1, frame: bytes = NOM) -> None:
    """Record `count` messages of one conversation."""
    for _ in range(count):
        tap.record(sender="C", peer="00aa", conversation="c1", frames=[frame])


def segment_files(folder: Path) -> list[Path]:
    """Return the finished segments, unread."""
    return sorted(path for path in folder.glob("*.parquet") if not path.name.startswith("."))


def test_messages_come_back_in_order(tmp_path: Path) -> None:
    """`seq` has no gaps and the clocks never go back."""
    with Tap.open(tmp_path / "capture", protocol="filemq", name="server", edition="2") as tap:
        for at in range(1000):
            tap.record(sender="CS"[at % 2], peer="é", conversation="c1", frames=[at.to_bytes(2, "big"), b""])
    table = read_segments(tmp_path / "capture")
    assert table.column("seq").to_pylist() == list(range(1000))
    assert table.column("frames").to_pylist() == [[at.to_bytes(2, "big"), b""] for at in range(1000)]
    assert (np.diff(table.column("mono").to_numpy()) >= 0).all()
    assert set(table.column("tap").to_pylist()) == {tap.id}
    assert (tap.recorded, tap.dropped) == (1000, 0)


def test_folder_and_files_are_private(tmp_path: Path) -> None:
    """Captures hold payloads: 0700 for a folder made here, 0600 for files."""
    with Tap.open(tmp_path / "new" / "capture", protocol="filemq", name="server") as tap:
        record(tap)
    (path,) = segment_files(tmp_path / "new" / "capture")
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_no_traffic_no_file(tmp_path: Path) -> None:
    """A silent peer leaves an empty folder."""
    Tap.open(tmp_path, protocol="filemq", name="server").close()
    assert list(tmp_path.iterdir()) == []


def test_a_segment_closes_after_its_time(tmp_path: Path) -> None:
    """A message is readable though the tap is open and nothing follows."""
    with Tap.open(tmp_path, protocol="filemq", name="server", limits=Limits(segment_s=0.2)) as tap:
        record(tap)
        wait_until(lambda: len(segment_files(tmp_path)) == 1)
        record(tap)
        wait_until(lambda: len(segment_files(tmp_path)) == 2)
    assert read_segments(tmp_path).column("seq").to_pylist() == [0, 1]


@pytest.mark.parametrize("limits", [Limits(segment_rows=10), Limits(segment_octets=10 * len(NOM))])
def test_a_segment_closes_at_its_size(tmp_path: Path, limits: Limits) -> None:
    """Rows or octets, whichever comes first."""
    with Tap.open(tmp_path, protocol="filemq", name="server", limits=limits) as tap:
        record(tap, 35)
    assert [segment.rows for segment in find_segments(tmp_path)] == [10, 10, 10, 5]


def test_two_taps_of_one_name_share_a_folder(tmp_path: Path) -> None:
    """File names and ids are unique to the tap."""
    with (
        Tap.open(tmp_path, protocol="filemq", name="peer") as one,
        Tap.open(tmp_path, protocol="filemq", name="peer") as other,
    ):
        record(one, 3)
        record(other, 4)
    assert one.id != other.id
    assert sorted(segment.rows for segment in find_segments(tmp_path)) == [3, 4]


def test_drops_are_counted_over_the_bound(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A stopped writer does not stop traffic; the hole is counted, logged once, and stated in the file."""
    limits = Limits(queue_rows=5, queue_octets=1 << 30)
    tap = Tap.open(tmp_path, protocol="filemq", name="server", limits=limits)
    os.kill(tap._writer.pid, signal.SIGSTOP)
    record(tap, 100, bytes(1 << 20))  # who waited for the writer would wait for ever
    os.kill(tap._writer.pid, signal.SIGCONT)
    tap.close()
    assert tap.dropped > 0
    assert tap.recorded + tap.dropped == 100
    assert read_segments(tmp_path).column("seq").to_pylist() == list(range(tap.recorded))
    assert find_segments(tmp_path)[-1].dropped == tap.dropped
    assert [entry.message for entry in caplog.records] == [
        f"capture {tap.id}: the queue is full, messages are dropped"
    ]


def test_octets_bound_the_queue(tmp_path: Path) -> None:
    """A message larger than the whole queue is dropped, not waited for."""
    with Tap.open(tmp_path, protocol="filemq", name="server", limits=Limits(queue_octets=100)) as tap:
        record(tap, 1, bytes(101))
        record(tap)
    assert (tap.recorded, tap.dropped) == (1, 1)


def test_drops_without_traffic_are_stated(tmp_path: Path) -> None:
    """Where every message was dropped, a segment without rows says so."""
    with Tap.open(tmp_path, protocol="filemq", name="server", limits=Limits(queue_rows=0)) as tap:
        record(tap, 3)
    (segment,) = find_segments(tmp_path)
    assert (segment.rows, segment.dropped) == (0, 3)


def test_text_without_utf8_is_dropped(tmp_path: Path) -> None:
    """A peer name with a lone surrogate has no octets; `seq` has no gap for it."""
    with Tap.open(tmp_path, protocol="filemq", name="server") as tap:
        tap.record(sender="C", peer="\udc80", conversation="c1", frames=[NOM])
        record(tap, 2)
    assert (tap.recorded, tap.dropped) == (2, 1)
    assert read_segments(tmp_path).column("seq").to_pylist() == [0, 1]


def test_a_killed_writer_is_reported_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What never reached a segment counts as dropped, and traffic goes on."""
    tap = Tap.open(tmp_path, protocol="filemq", name="server", limits=Limits(segment_s=0.1))
    record(tap, 10)
    wait_until(lambda: tap.written == 10)
    tap._writer.kill()
    tap._writer.wait()
    wait_until(lambda: bool(caplog.records))
    record(tap, 7)
    tap.close()
    assert tap.dropped == 7
    assert [entry.message for entry in caplog.records] == [
        f"capture {tap.id}: the writer process has ended, messages are dropped"
    ]
    assert read_segments(tmp_path).num_rows == 10


def test_a_full_disk_is_counted_and_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A write that fails loses its segment; a later one that succeeds states the loss."""
    with Tap.open(tmp_path, protocol="filemq", name="server", limits=Limits(segment_rows=10)) as tap:
        resource.prlimit(tap._writer.pid, resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
        record(tap, 10)
        wait_until(lambda: tap.dropped == 10)
        resource.prlimit(tap._writer.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        record(tap, 10)
    assert (tap.recorded, tap.dropped) == (20, 10)
    (segment,) = find_segments(tmp_path)
    assert (segment.rows, segment.dropped) == (10, 10)
    fault, again = caplog.records
    assert "10 messages could not be written" in fault.message
    assert (fault.levelno, again.levelno) == (logging.ERROR, logging.WARNING)
    assert again.message.endswith("writes again, 10 messages were dropped")


def test_each_shortage_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """However many segments it costs; and it is told again when there is another."""
    with Tap.open(tmp_path, protocol="filemq", name="server", limits=Limits(segment_rows=10)) as tap:
        for shortage in (1, 2):
            resource.prlimit(tap._writer.pid, resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
            record(tap, 30)
            wait_until(lambda shortage=shortage: tap.dropped == 30 * shortage)  # type: ignore[misc]
            resource.prlimit(tap._writer.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
            record(tap, 10)
            wait_until(lambda shortage=shortage: tap.written == 10 * shortage)  # type: ignore[misc]
    assert [entry.levelname for entry in caplog.records] == ["ERROR", "WARNING"] * 2


def test_the_disk_is_left_to_the_traffic(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Where less is free than is to stay free, messages are dropped and counted; who records them never waits."""
    limits = Limits(segment_rows=10, free_octets=1 << 60)
    with Tap.open(tmp_path, protocol="filemq", name="server", limits=limits) as tap:
        record(tap, 20)
        wait_until(lambda: tap.dropped == 20)
    assert segment_files(tmp_path) == []
    (entry,) = caplog.records
    assert "MiB of the disk are free; messages are dropped until it can" in entry.message


def test_old_segments_go_while_a_tap_writes(tmp_path: Path) -> None:
    """By the options of the tap, other taps' segments too."""
    old = put_segment(tmp_path, 0, range(3))
    limits = Limits(retention=Retention(keep_s=3600.0))
    with Tap.open(tmp_path, protocol="filemq", name="server", limits=limits) as tap:
        record(tap, 5)
        wait_until(lambda: not old.exists())
    assert read_segments(tmp_path).num_rows == 5


def test_payloads_are_written_as_the_policy_says(tmp_path: Path) -> None:
    """The metadata says so, and everything else is as it was."""
    with Tap.open(tmp_path, protocol="filemq", name="server", limits=Limits(payload=Payload("hash"))) as tap:
        tap.record(sender="S", peer="p", conversation="c", frames=CHEEZBURGER)
    (segment,) = find_segments(tmp_path)
    assert segment.source is not None and segment.source.payload == "hash"
    (frames,) = read_segments(tmp_path).column("frames").to_pylist()
    digest = b"sha256:22a8c06b080a6e099b91d2524674d2f32e4b08befaa1f868d3b94a2f6ae6ccaa 6"  # sha256sum's
    assert filemq.decode(frames or []) == filemq.decode(CHEEZBURGER).replace(chunk=digest)


def test_a_writer_that_hangs_is_ended(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Closing is bounded in time; what the writer held counts as dropped."""
    tap = Tap.open(tmp_path, protocol="filemq", name="server", limits=Limits(close_s=1.0))
    os.kill(tap._writer.pid, signal.SIGSTOP)
    record(tap, 5)
    begun = time.monotonic()
    tap.close()
    assert time.monotonic() - begun < DEADLINE_S
    assert tap.dropped == 5
    assert "the writer did not finish within 1 s" in caplog.text


@pytest.mark.parametrize("name", ["", ".hidden", "_hidden", "a/b", "a b", "é"])
def test_a_name_unfit_for_files_is_refused(tmp_path: Path, name: str) -> None:
    """Names become file names, and readers pass over those with a leading '.' or '_'."""
    with pytest.raises(CaptureError, match="cannot name a tap"):
        Tap.open(tmp_path, protocol="filemq", name=name)


def test_a_file_in_the_folders_place_is_refused(tmp_path: Path) -> None:
    """The sentence names the path."""
    (tmp_path / "taken").write_text("")
    with pytest.raises(CaptureError, match="taken: the capture folder cannot be made: File exists"):
        Tap.open(tmp_path / "taken", protocol="filemq", name="server")


def test_a_closed_tap_takes_nothing(tmp_path: Path) -> None:
    """Closing twice is closing once; a message after it is dropped."""
    tap = Tap.open(tmp_path, protocol="filemq", name="server")
    record(tap)
    tap.close()
    tap.close()
    record(tap)
    assert (tap.recorded, tap.dropped) == (1, 1)


def test_a_reader_never_sees_half_a_segment(tmp_path: Path) -> None:
    """Whatever is listed while a writer runs is whole."""
    stop = threading.Event()
    seen: list[int] = []

    def read_on() -> None:
        while not stop.is_set():
            if segment_files(tmp_path):
                seen.append(read_segments(tmp_path).num_rows)

    with ThreadPoolExecutor(1) as readers:
        reader = readers.submit(read_on)
        try:
            with Tap.open(tmp_path, protocol="filemq", name="server", limits=Limits(segment_rows=20)) as tap:
                record(tap, 2000, bytes(1000))
                wait_until(lambda: len(seen) > 1)
        finally:
            stop.set()
        reader.result(DEADLINE_S)
    assert seen == sorted(seen)
    assert read_segments(tmp_path).num_rows == 2000


PEER = """
import os, sys, time
from pathlib import Path
from specwire.runtime.capture import Tap
tap = Tap.open(Path(sys.argv[1]), protocol="filemq", name="peer")
assert not {"pyarrow", "numpy"} & set(sys.modules), "a peer stays small"
at = 0
while True:
    tap.record(sender="C", peer="p", conversation="c", frames=[at.to_bytes(8, "big")])
    at += 1
    if at % 50 == 0:
        print(at, tap._writer.pid, flush=True)
        time.sleep(0.01)
"""


FORGETFUL = """
import sys
from pathlib import Path
from specwire.runtime.capture import Tap
tap = Tap.open(Path(sys.argv[1]), protocol="filemq", name="peer")
for at in range(5000):
    tap.record(sender="C", peer="p", conversation="c", frames=[bytes(100)])
raise SystemExit(3)
"""


def test_a_program_that_ends_writes_all(tmp_path: Path) -> None:
    """Though nobody closed the tap."""
    ran = subprocess.run([sys.executable, "-c", FORGETFUL, str(tmp_path)], timeout=DEADLINE_S, check=False)
    assert ran.returncode == 3
    assert read_segments(tmp_path).num_rows == 5000


def test_kill_9_keeps_what_was_handed_over(tmp_path: Path) -> None:
    """The writer outlives a killed peer, writes what the pipe holds and ends."""
    with subprocess.Popen(
        [sys.executable, "-c", PEER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as peer:
        assert peer.stdout is not None
        said = [peer.stdout.readline().split() for _ in range(30)]
        peer.kill()
    count, writer_pid = int(said[-1][0]), int(said[-1][1])
    wait_until(lambda: not _alive(writer_pid))
    table = read_segments(tmp_path)
    assert table.num_rows >= count - 50
    assert table.column("seq").to_pylist() == list(range(table.num_rows))
    assert not list(tmp_path.glob(".*.tmp"))


def test_kill_9_of_both_keeps_the_last_flush(tmp_path: Path) -> None:
    """With the writer killed as well, every finished segment is whole and `seq` has no gap."""
    with subprocess.Popen(
        [sys.executable, "-c", PEER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as peer:
        assert peer.stdout is not None
        writer_pid = int(peer.stdout.readline().split()[1])
        wait_until(lambda: len(segment_files(tmp_path)) >= 2)
        peer.kill()
        os.kill(writer_pid, signal.SIGKILL)
    table = read_segments(tmp_path)
    assert table.num_rows > 0
    assert table.column("seq").to_pylist() == list(range(table.num_rows))


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return state != "Z"
