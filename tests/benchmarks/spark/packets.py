"""Packet captures to tables: two files on two cores, against one core that writes a capture first.

The yardstick is what one core does: `specwire decode a.pcap b.pcap --out CAPTURE`, then `specwire pipeline run` on
it with ``local[1]``. The other way is one `specwire pipeline run` on the folder of the two files with ``local[2]``. All
commands start their own Python and Java processes, as a user's do. A message has 4 KiB of content, as FILEMQ's have.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.spark.harness import Bench, Row

SHARE = 100
"""Of the messages that are asked for, one in so many: each is some 40 times as large as those of other captures."""

WANTED = 1 / 1.5
"""The most time that two cores may take, as a part of one core's."""

CHUNK = b"\x00\x01" + os.urandom(64) * 64
CHEEZBURGER = bytes.fromhex("aaa30800000000000000050105612e6a7067000000000000100000")
OHAI = bytes.fromhex("aaa3010646494c454d5102")
GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x01NULL" + bytes(16) + b"\x00" + bytes(31)
RAW_IP = 101
SYN, ACK = 2, 16


def measure(bench: Bench) -> Iterator[Row]:
    """Yield the two ways."""
    messages = max(100, bench.rows // SHARE)
    folder = bench.folder / "packets"
    for number in range(2):
        write_packets(folder / f"{number}.pcap", messages // 2, 40_000 + number)
    octets = sum(path.stat().st_size for path in folder.iterdir())

    def one_core() -> None:
        with tempfile.TemporaryDirectory(dir=bench.folder) as name:
            files = [str(path) for path in sorted(folder.iterdir())]
            _run(1, "decode", *files, "--out", f"{name}/capture")
            _run(
                1,
                "pipeline",
                "run",
                "--capture",
                f"{name}/capture",
                "--out",
                f"{name}/out",
                "--master",
                "local[1]",
            )

    def two_cores() -> None:
        with tempfile.TemporaryDirectory(dir=bench.folder) as name:
            _run(
                2, "pipeline", "run", "--capture", str(folder), "--out", f"{name}/out", "--master", "local[2]"
            )

    ways = {"one core": one_core, "two files on two cores": two_cores}
    case = f"packet captures, {octets / 1e6:,.0f} MB"
    yield from bench.take_turns(case, ways, messages, wanted={"two files on two cores": WANTED}, warm=0)


def _run(cores: int, *arguments: str) -> None:
    command = [sys.executable, "-m", "specwire", *arguments]
    available = sorted(os.sched_getaffinity(0))[:cores]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, process_group=0
    ) as process:
        os.sched_setaffinity(process.pid, available)
        assert process.wait() == 0, command


def write_packets(path: Path, messages: int, port: int) -> None:
    """Write one connection whose server sends so many messages."""
    path.parent.mkdir(exist_ok=True)
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 18, RAW_IP))
        sent = {True: 1000, False: 9000}
        number = 0

        def put(from_client: bool, payload: bytes, flags: int = ACK) -> None:
            nonlocal number
            ends = (port, 5670) if from_client else (5670, port)
            tcp = struct.pack(
                ">HHIIBBHHH", *ends, sent[from_client], sent[not from_client], 80, flags, 9, 0, 0
            )
            size = 40 + len(payload)
            ip = struct.pack(">BBHHHBBH4s4s", 69, 0, size, 0, 0, 64, 6, 0, b"\x7f\0\0\1", b"\x7f\0\0\1")
            file.write(
                struct.pack("<IIII", 1_772_366_400 + number // 10_000, number % 10_000 * 100, size, size)
            )
            file.write(ip + tcp + payload)
            sent[from_client] += len(payload) + (flags & SYN) // SYN
            number += 1

        put(True, b"", SYN)
        put(False, b"", SYN | ACK)
        for side, kind in ((True, b"DEALER"), (False, b"ROUTER")):
            ready = b"\x05READY\x0bSocket-Type" + struct.pack(">I", len(kind)) + kind
            put(side, GREETING + b"\x04" + bytes([len(ready)]) + ready)
        put(True, b"\x00" + bytes([len(OHAI)]) + OHAI)
        head = b"\x01" + bytes([len(CHEEZBURGER)]) + CHEEZBURGER
        for _ in range(messages - 1):
            put(False, head + b"\x02" + struct.pack(">Q", len(CHUNK)) + CHUNK)
