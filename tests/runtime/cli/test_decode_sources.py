"""`specwire decode` of hex dumps, packet captures and capture folders (docs/how-to/decode.md): printed, filtered, written, followed."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.runtime.cli.commands import Outcome, specwire
from tests.runtime.pcap.wire import Talk, greeting, message, pcap, ready

OHAI, OHAI_OK, NOM = (
    b"\xaa\xa3\x01\x06FILEMQ\x02",
    b"\xaa\xa3\x04",
    b"\xaa\xa3\x07" + (1000).to_bytes(8, "big"),
)
"""FILEMQ v2: signature AA A3, the command's number, its fields."""

DEADLINE_S = 60


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A FILEMQ peering that begins on 1 March 2026 at 12:00, and a message that is none."""
    talk = Talk().handshake(b"\0client").say("C", message(OHAI)).say("S", message(OHAI_OK))
    talk.say("C", message(NOM)).say("C", message(b"\xaa\xa3\x63")).close()
    file = tmp_path / "peering.pcap"
    file.write_bytes(pcap(talk.packets))
    return file


def rows(outcome: Outcome) -> list[dict[str, Any]]:
    assert outcome.status == 0, outcome.err
    return [json.loads(line) for line in outcome.out.splitlines()]


def names(outcome: Outcome) -> list[str | None]:
    return [row["message"] for row in rows(outcome)]


def test_columns_for_a_person(recorded: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The handshake takes 11 packets, so OHAI comes 11 ms after noon."""
    outcome = specwire(capfd, "decode", str(recorded))
    assert outcome.status == 0 and outcome.err == ""
    lines = [re.split(r" {2,}", line) for line in outcome.out.splitlines()]
    assert lines[0] == ["time", "peer", "from", "message", "fields"]
    assert lines[1] == ["2026-03-01 12:00:00.011000", "00636c69656e74", "C", "Ohai"]
    assert lines[3][2:] == ["C", "Nom", "credit=1000"]
    assert lines[4][2:4] == ["C", "?"] and "0x63" in lines[4][4] and len(lines) == 5


def test_json_for_a_program(recorded: Path, capfd: pytest.CaptureFixture[str]) -> None:
    found = rows(specwire(capfd, "decode", str(recorded), "--json"))
    assert found[2] == {
        "ts": "2026-03-01T12:00:00.013000Z",
        "protocol": "filemq",
        "conversation": "1-127.0.0.1:40000-127.0.0.1:5670",
        "sender": "C",
        "peer": "00636c69656e74",
        "message": "Nom",
        "fields": {"credit": 1000},
        "frames": [NOM.hex()],
    }
    assert found[3]["message"] is None and found[3]["frames"] == ["aaa363"]
    assert found[3]["error"]["kind"] == "tag" and found[3]["error"]["offset"] == 2


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--message", "nom"), ["Nom"]),
        (("--message", "OHAI-OK", "--message", "Ohai"), ["Ohai", "OhaiOk"]),
        (("--errors",), [None]),
        (("--limit", "2"), ["Ohai", "OhaiOk"]),
        (("--since", "2026-03-01T12:00:00.013"), ["Nom", None]),
        (("--until", "2026-03-01T13:00:00.012+01:00"), ["Ohai"]),
        (("--since", "2026-03-01T12:00:00.012", "--until", "2026-03-01T12:00:00.013"), ["OhaiOk"]),
        (("--peer", "00636C"), ["Ohai", "OhaiOk", "Nom", None]),
        (("--peer", "127.0.0.1:5670", "--message", "Nom"), ["Nom"]),
        (("--peer", "elsewhere"), []),
        (("--port", "40000", "--message", "Nom"), ["Nom"]),
        (("--port", "1"), []),
    ],
)
def test_filters(
    arguments: tuple[str, ...], expected: list[str | None], recorded: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    outcome = specwire(capfd, "decode", str(recorded), "--json", *arguments)
    assert names(outcome) == expected
    assert ("specwire: no message is as asked for" in outcome.err) == (
        not expected and "--port" not in arguments
    )


def test_protocol_is_named_or_of_a_port(recorded: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for arguments in (
        ("filemq", str(recorded)),
        (str(recorded), "--protocol", "filemq"),
        (str(recorded), "--protocol", "5670=filemq", "--protocol", "zre"),
        (str(recorded), "--protocol", "auto"),
    ):
        found = rows(specwire(capfd, "decode", "--json", *arguments))
        assert [row["protocol"] for row in found] == ["filemq"] * 4
    outcome = specwire(capfd, "decode", "--json", str(recorded), "--protocol", "flux")
    assert {row["protocol"] for row in rows(outcome)} == {"flux"}
    assert all("error" in row for row in rows(outcome))


def test_details_show_frames_and_fields(recorded: Path, capfd: pytest.CaptureFixture[str]) -> None:
    outcome = specwire(capfd, "decode", str(recorded), "--details", "--message", "Nom")
    assert "filemq Nom (NOM)" in outcome.out and "aaa307 00000000 000003e8" in outcome.out


def test_captures_are_told_by_what_they_begin_with(
    recorded: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    packed = tmp_path / "any name"
    packed.write_bytes(
        gzip.compress(recorded.read_bytes()[:400]) + gzip.compress(recorded.read_bytes()[400:])
    )
    assert names(specwire(capfd, "decode", str(packed), "--json")) == ["Ohai", "OhaiOk", "Nom", None]


def test_several_files_are_one_recording(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """tcpdump -C begins a new file in the middle of a connection, and of a message."""
    talk = Talk().handshake().say("C", message(OHAI), cut=3)
    files = [tmp_path / "1", tmp_path / "2"]
    files[0].write_bytes(pcap(talk.packets[:-2]))
    files[1].write_bytes(pcap(talk.packets[-2:]))
    assert names(specwire(capfd, "decode", "--json", *map(str, files))) == ["Ohai"]


def test_damage_is_told_after_what_was_read(recorded: Path, capfd: pytest.CaptureFixture[str]) -> None:
    whole = recorded.read_bytes()
    recorded.write_bytes(whole + b"\xff" * 16)
    outcome = specwire(capfd, "decode", str(recorded), "--json")
    assert outcome.status == 2 and len(outcome.out.splitlines()) == 4
    assert outcome.err == (
        f"specwire: {recorded}: the file is damaged at octet {len(whole)}: a packet says that it has 4294967295"
        " octets, more than 16777216\n"
    )
    recorded.write_bytes(whole[:-3])
    outcome = specwire(capfd, "decode", str(recorded), "--json")
    assert outcome.status == 0 and "ends in the middle of a record" in outcome.err


def test_what_cannot_be_read_is_told(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "curve.pcap"
    file.write_bytes(pcap(Talk().open().say("C", greeting(b"CURVE")).close().packets))
    outcome = specwire(capfd, "decode", str(file))
    assert outcome.status == 1 and outcome.out == ""
    assert outcome.err == (
        "specwire: 127.0.0.1:40000 to 127.0.0.1:5670 cannot be read: it is encrypted (CURVE)\n"
        "specwire: no message was found; record connections of ZMTP from their beginning, or wait for messages"
        " with --follow\n"
    )


def test_folder_of_packet_captures_is_told_what_reads_it(
    recorded: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = recorded.parent
    outcome = specwire(capfd, "decode", str(folder))
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err == (
        f"specwire: {folder}: a folder of packet captures; name its files, or read the folder on Spark: "
        f"`specwire decode {folder}/*`, `specwire pipeline run --capture {folder} --out OUT`\n"
    )


@pytest.mark.parametrize(
    ("octets", "arguments", "status"),
    [
        (24, (), 1),
        (20, (), 1),
        (24, ("--message", "Nom"), 1),
        (24, ("--port", "5670"), 0),
        (-1, (), 0),
        (None, ("--peer", "elsewhere"), 0),
        (None, ("--protocol", "flux"), 0),
    ],
)
def test_source_without_any_message_is_status_1(
    octets: int | None,
    arguments: tuple[str, ...],
    status: int,
    recorded: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The file's header has 24 octets; filters and faults explain that nothing is shown, other ports that nothing is seen."""
    recorded.write_bytes(recorded.read_bytes()[:octets])
    outcome = specwire(capfd, "decode", str(recorded), *arguments)
    assert outcome.status == status
    assert ("no message was found; record" in outcome.err) == (status == 1)


def test_capture_has_the_protocol_of_what_broke_before_it_was_known(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A recording, and the capture that is made of it, say the same of a first message that is cut short."""
    pytest.importorskip("pyarrow")
    file, folder = tmp_path / "cut.pcap", tmp_path / "capture"
    talk = Talk().handshake(b"\0me").say("C", message(OHAI[:7])).say("C", message(OHAI))
    file.write_bytes(pcap(talk.packets))
    assert specwire(capfd, "decode", str(file), "--out", str(folder)).status == 0
    keys = ("protocol", "sender", "peer", "message", "frames", "error")
    said = [
        [{key: row.get(key) for key in keys} for row in rows(specwire(capfd, "decode", str(place), "--json"))]
        for place in (file, folder)
    ]
    assert said[0] == said[1] and [row["protocol"] for row in said[0]] == ["filemq", "filemq"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("nowhere.pcap",), "there is no file, folder or protocol 'nowhere.pcap'"),
        (("filemk",), "there is no file, folder or protocol 'filemk'; did you mean 'filemq'?"),
        (("filemq",), "what is to be decoded? name the frames of a message, a file, a folder, or -"),
        (("filemq", "nowhere.pcap"), "frame 0 is not hexadecimal: 'nowhere.pcap'; nor is there such a file"),
        (("PCAP", "--message", "Nomm"), "no message is called 'Nomm'; did you mean 'Nom'?"),
        (("PCAP", "--since", "noon"), "--since: 'noon' is no time"),
        (("PCAP", "--protocol", "x=flux"), "--protocol x=flux: 'x' is no TCP port; write it as 5670=filemq"),
        (("PCAP", "--protocol", "filemk"), "there is no protocol 'filemk'"),
        (("PCAP", "--strict"), "--strict is for one message"),
        (("PCAP", "-", "--follow"), "--follow takes one file or folder, or - for standard input"),
        (("filemq", "aaa30"), "frame 0 has an odd number of hexadecimal digits (5): 'aaa30'"),
        (("filemq", "a" * 5001), "frame 0 has an odd number of hexadecimal digits (5,001): 'aaaa"),
        (("a" * 5001,), "there is no file, folder or protocol 'aaaa"),
        (("filemq", "z" * 5001), "frame 0 is not hexadecimal: 'zzzz"),
        (("aaa304", "--protocol", "auto"), "which protocol? one message is decoded as"),
    ],
)
def test_mistakes_are_told_in_a_sentence(
    arguments: tuple[str, ...], sentence: str, recorded: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    given = [str(recorded) if text == "PCAP" else text for text in arguments]
    outcome = specwire(capfd, "decode", *given)
    assert outcome.status == 2 and outcome.out == "" and sentence in outcome.err
    assert len(outcome.err) < 400 and "too long" not in outcome.err


# ---- hex dumps


@pytest.mark.parametrize(
    "text",
    [
        "aaa301 06 46494c454d5102\n\naaa307 00000000000003e8\n",
        "0000  aa a3 01 06 46 49 4c 45 4d 51 02   ....FILEMQ.\n\n0000  aa a3 07 00 00 00 00 00 00 03 e8\n",
    ],
)
def test_dumps_of_frames(text: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "dump.txt"
    file.write_text(text, encoding="utf-8")
    found = rows(specwire(capfd, "decode", "--json", "filemq", str(file)))
    assert [(row["message"], row["ts"]) for row in found] == [("Ohai", None), ("Nom", None)]


def test_frames_of_one_message_with_empty_lines_between(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Flux: delimiter, topic, payload, header; a dump with an empty line between frames is still one message."""
    frames = ["''", "617474722e676574", "7b7d00", "8e01010bffffffff00000000ffffffff00000001"]
    file = tmp_path / "dump.txt"
    for separator in ("\n", "\n\n"):
        file.write_text(separator.join(frames), encoding="utf-8")
        (found,) = rows(specwire(capfd, "decode", "--json", str(file)))
        assert (found["message"], found["fields"]["topic"]) == ("Request", "attr.get")


def test_dump_of_a_stream_and_of_packets(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "dump.txt"
    stream = greeting() + ready(b"DEALER") + message(OHAI) + message(NOM)
    file.write_text((stream + b"\x00").hex(" "), encoding="utf-8")
    outcome = specwire(capfd, "decode", "--json", str(file), "--sender", "C")
    assert names(outcome) == ["Ohai", "Nom"] and {row["sender"] for row in rows(outcome)} == {"C"}
    assert "the stream is not whole: it ends in the middle of a frame" in outcome.err
    talk = Talk().handshake().say("C", message(OHAI))
    file.write_text("\n\n".join(packet.octets.hex() for packet in talk.packets), encoding="utf-8")
    (found,) = rows(specwire(capfd, "decode", "--json", str(file)))
    assert (found["message"], found["sender"], found["ts"]) == ("Ohai", "C", None)


def test_part_of_a_stream_is_told_to_be_one(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "dump.txt"
    file.write_text((message(OHAI) + message(NOM)).hex(), encoding="utf-8")
    assert names(specwire(capfd, "decode", "--json", str(file), "--dump-of", "stream")) == ["Ohai", "Nom"]


@pytest.mark.parametrize(
    ("octets", "sentence"),
    [
        (b"\x7fELF\x00", "neither a packet capture (pcap, pcapng) nor a capture segment nor a hex dump"),
        (b"", "there are no octets in it"),
        (b"aa\nzz\n", ":2: neither hexadecimal nor a line of a hex dump: 'zz'"),
        (greeting(b"CURVE").hex().encode(), "the stream cannot be read: it is encrypted (CURVE)"),
        (b"PAR1", "not a whole Parquet file"),
    ],
)
def test_files_that_are_nothing_of_that(
    octets: bytes, sentence: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.write_bytes(octets)
    outcome = specwire(capfd, "decode", str(file))
    assert outcome.status == 2 and sentence in outcome.err


# ---- capture folders


def test_written_as_a_capture_and_read_again(
    recorded: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyarrow")
    folder = tmp_path / "capture"
    outcome = specwire(capfd, "decode", str(recorded), "--out", str(folder), "--json")
    assert json.loads(outcome.out) == {"folder": str(folder), "written": {"filemq": 4}, "left_out": 0}
    packets = rows(specwire(capfd, "decode", str(recorded), "--json"))
    assert rows(specwire(capfd, "decode", str(folder), "--json")) == packets
    assert names(specwire(capfd, "decode", str(next(folder.iterdir())), "--json", "--message", "nom")) == [
        "Nom"
    ]
    outcome = specwire(capfd, "decode", str(recorded), "--out", str(folder))
    assert outcome.status == 2 and "there is a capture in this folder; name an empty one" in outcome.err


def test_taps_are_read_together_by_time(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Two listeners become two taps; what they recorded comes in the order of its times."""
    pytest.importorskip("pyarrow")
    talks = [
        Talk(server=("127.0.0.1", port), start_ns=(10 + port) * 10**9).handshake().say("C", message(OHAI))
        for port in (2, 1)
    ]
    talks[1].say("C", message(NOM))
    file = tmp_path / "two.pcap"
    file.write_bytes(pcap([*talks[0].packets, *talks[1].packets]))
    folder = tmp_path / "capture"
    assert specwire(capfd, "decode", str(file), "--out", str(folder)).status == 0
    assert len(list(folder.iterdir())) == 2
    assert names(specwire(capfd, "decode", str(folder), "--json")) == ["Ohai", "Nom", "Ohai"]


def test_damaged_segments_are_passed_over_and_told(
    recorded: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyarrow")
    folder = tmp_path / "capture"
    specwire(capfd, "decode", str(recorded), "--out", str(folder))
    (folder / "cut-000000.parquet").write_bytes(b"PAR1 cut off")
    outcome = specwire(capfd, "decode", str(folder), "--json")
    assert len(rows(outcome)) == 4 and "cut-000000.parquet: not a whole Parquet file" in outcome.err


# ---- terminals


def test_terminal_shows_the_day_once_and_cuts_lines(
    recorded: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Errors are not cut: they say what to mend."""
    monkeypatch.setattr(
        "specwire.runtime.cli.decode_lines.output",
        lambda: SimpleNamespace(is_terminal=True, width=50, color_system=None),
    )
    lines = specwire(capfd, "decode", str(recorded)).out.splitlines()
    assert lines[1] == "2026-03-01" and lines[2].startswith("12:00:00.011000  00636c69656e74")
    assert len(lines[4]) <= 50 and lines[4].startswith("12:00:00.013000")
    assert lines[5].startswith("12:00:00.014000") and "0x63" in lines[5]


def test_terminal_codes_of_a_peer_stay_octets(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "hostile.pcap"
    hostile = b"\xaa\xa3\x81\x05\x1b[2Jx"
    file.write_bytes(pcap(Talk().handshake(b"\x1b]0;").say("S", message(hostile)).packets))
    for arguments in ((), ("--details",), ("--json",)):
        outcome = specwire(capfd, "decode", str(file), *arguments)
        assert "\x1b" not in outcome.out and "[2Jx" in outcome.out


def test_bar_leaves_standard_output_alone(recorded: Path, tmp_path: Path) -> None:
    """Standard error is a terminal, where the bar is; standard output a file, which has the messages and nothing else."""
    near, far = os.openpty()
    out = tmp_path / "out"
    with out.open("wb") as file:
        command = [sys.executable, "-m", "specwire.runtime.cli.main", "decode", "--json", str(recorded)]
        running = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=far)
    os.close(far)
    try:
        while os.read(near, 4096):
            pass
    except OSError:
        pass  # So a terminal ends when nobody holds its other side.
    finally:
        os.close(near)
    assert running.wait(DEADLINE_S) == 0
    assert [json.loads(line)["message"] for line in out.read_text().splitlines()] == [
        "Ohai",
        "OhaiOk",
        "Nom",
        None,
    ]
