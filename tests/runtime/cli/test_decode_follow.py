"""`specwire decode` of what grows: files and folders that are followed, and standard input (docs/how-to/decode.md)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runtime.pcap.wire import Talk, message, pcap

OHAI, NOM = b"\xaa\xa3\x01\x06FILEMQ\x02", b"\xaa\xa3\x07" + (1000).to_bytes(8, "big")
"""FILEMQ v2: signature AA A3, the command's number, its fields."""

DEADLINE_S = 60


def follow(*arguments: str, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "specwire.runtime.cli.main", "decode", "--json", *arguments]
    return subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[bytes]]]:
    running: list[subprocess.Popen[bytes]] = []
    yield running
    for process in running:
        process.kill()
        process.communicate()


def next_name(process: subprocess.Popen[bytes]) -> str:
    assert process.stdout is not None
    return str(json.loads(process.stdout.readline())["message"])


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_growing_file_is_followed_until_a_signal(
    ending: signal.Signals, tmp_path: Path, started: list[subprocess.Popen[bytes]]
) -> None:
    """The file begins empty; a message comes out when its packets are there, whole."""
    talk = Talk().handshake().say("C", message(OHAI)).say("C", message(NOM))
    octets, file = pcap(talk.packets), tmp_path / "growing.pcap"
    file.write_bytes(b"")
    started.append(follow(str(file), "--follow"))
    with file.open("ab", buffering=0) as growing:
        growing.write(octets[:-5])
        assert next_name(started[0]) == "Ohai"
        growing.write(octets[-5:])
        assert next_name(started[0]) == "Nom"
    started[0].send_signal(ending)
    assert started[0].wait(DEADLINE_S) == 0


def test_growing_capture_is_followed(tmp_path: Path, started: list[subprocess.Popen[bytes]]) -> None:
    pytest.importorskip("pyarrow")
    from specwire.runtime.pcap.recording import Recording
    from specwire.runtime.pcap.rows import Row

    folder = tmp_path / "capture"
    recording = Recording(folder)
    started.append(follow(str(folder), "--follow", "--limit", "2"))
    for ts, frame in enumerate((OHAI, NOM)):
        recording.add(Row(frames=(frame,), ts=ts, protocol="filemq", sender="C"), "")
        recording.flush()
        assert next_name(started[0]) == ("Ohai", "Nom")[ts]
    assert started[0].wait(DEADLINE_S) == 0


@pytest.mark.parametrize("options", [(), ("--follow",)])
def test_standard_input_is_read_as_it_comes(
    options: tuple[str, ...], started: list[subprocess.Popen[bytes]]
) -> None:
    talk = Talk().handshake().say("C", message(OHAI)).say("C", message(NOM))
    octets = pcap(talk.packets)
    started.append(follow("-", *options, stdin=subprocess.PIPE))
    pipe = started[0].stdin
    assert pipe is not None
    last = len(tcp_packet_octets(talk))
    os.write(pipe.fileno(), octets[:-last])
    assert next_name(started[0]) == "Ohai"
    os.write(pipe.fileno(), octets[-last:])
    assert next_name(started[0]) == "Nom"
    pipe.close()
    started[0].stdin = None
    assert started[0].wait(DEADLINE_S) == 0


def tcp_packet_octets(talk: Talk) -> bytes:
    """The last packet; its record has 16 octets in front."""
    return bytes(16) + talk.packets[-1].octets


def test_folder_may_be_empty_at_first(tmp_path: Path, started: list[subprocess.Popen[bytes]]) -> None:
    pytest.importorskip("pyarrow")
    from specwire.runtime.pcap.recording import Recording
    from specwire.runtime.pcap.rows import Row

    recording = Recording(tmp_path)
    started.append(follow(str(tmp_path), "--follow", "--limit", "1"))
    recording.add(Row(frames=(NOM,), ts=1, protocol="filemq"), "")
    recording.flush()
    assert next_name(started[0]) == "Nom"
    assert started[0].wait(DEADLINE_S) == 0


def test_file_that_becomes_shorter_is_told(tmp_path: Path, started: list[subprocess.Popen[bytes]]) -> None:
    file = tmp_path / "growing.pcap"
    file.write_bytes(pcap(Talk().handshake().say("C", message(OHAI)).packets))
    started.append(follow(str(file), "--follow"))
    assert next_name(started[0]) == "Ohai"
    os.truncate(file, 24)
    assert started[0].wait(DEADLINE_S) == 1
    assert started[0].stderr is not None
    assert b"the file became shorter while it was followed" in started[0].stderr.read()
