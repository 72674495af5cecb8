"""`specwire capture list`, `compact` and `prune`, as they are typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.runtime.capture.folders import MONDAY_S, TAP, names, put_segment
from tests.runtime.cli.commands import specwire


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """Three segments of one tap, one of another, and one that is damaged."""
    folder = tmp_path / "capture"
    for number in range(3):
        put_segment(folder, number, range(number * 2, number * 2 + 2), MONDAY_S + number)
    put_segment(folder, 0, range(5), tap="client-18-60aa00bb00cc1", dropped=4)
    (folder / "z.parquet").write_bytes(b"PAR1")
    return folder


def test_list(capture: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Taps with their counts, and the damaged file by name."""
    done = specwire(capfd, "capture", "list", str(capture))
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert done.status == 0
    row = next(line for line in lines if line.startswith("client-18-60aa00bb00cc1"))
    assert row.startswith("client-18-60aa00bb00cc1 filemq 5 1 ")
    assert row.endswith(" 4 keep 2023-11-20 00:00:00Z 2023-11-20 00:00:00Z")
    assert any(line.startswith(f"{TAP} filemq 6 3 ") for line in lines)
    assert any(line.startswith("11 messages in 4 files, ") for line in lines)
    assert lines[-1].startswith("cannot be read: ") and "z.parquet" in lines[-1]


def test_list_as_json(capture: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Everything, times in microseconds."""
    done = specwire(capfd, "capture", "list", str(capture), "--json")
    found = json.loads(done.out)
    tap = next(tap for tap in found["taps"] if tap["tap"] == TAP)
    assert (tap["name"], tap["segments"], tap["messages"], tap["missing"]) == ("server", 3, 6, 0)
    assert (tap["first_us"], tap["last_us"]) == (MONDAY_S * 10**6, (MONDAY_S + 2) * 10**6)
    assert [Path(bad["path"]).name for bad in found["bad"]] == ["z.parquet"]
    assert len(found["segments"]) == 4


def test_list_tells_what_is_missing(capture: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """By the numbers in the names."""
    (capture / f"{TAP}-000001.parquet").unlink()
    done = specwire(capfd, "capture", "list", str(capture))
    assert f"{TAP}: 1 segments between its first and its last are not here" in done.out


def test_compact_and_list(capture: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """What would be done, what was done, and what there is then."""
    told = specwire(capfd, "capture", "compact", str(capture), "--dry-run")
    assert f"2023-11-20 {TAP}: 3 segments, 6 messages, " in told.out
    assert f"{TAP}-000000.parquet" in names(capture)
    done = specwire(capfd, "capture", "compact", str(capture), "--json")
    merged = json.loads(done.out)["merged"]
    assert [(one["tap"], one["segments"], one["messages"]) for one in merged] == [(TAP, 3, 6)]
    listed = " ".join(specwire(capfd, "capture", "list", str(capture)).out.split())
    assert f"{TAP} filemq 6 1 of 3 " in listed
    again = specwire(capfd, "capture", "compact", str(capture))
    assert again.out.startswith("nothing to merge: ")


def test_prune(capture: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """By age, in words and as JSON."""
    told = specwire(capfd, "capture", "prune", str(capture), "--keep", "1d", "--dry-run")
    assert told.out.startswith("4 segments would be deleted, ")
    assert told.out.endswith("0 segments stay, 0 octets\n")
    done = specwire(capfd, "capture", "prune", str(capture), "--max", "0", "--json")
    assert len(json.loads(done.out)["segments"]) == 4
    assert names(capture) == ["z.parquet"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("list", "none"), "none: there is no such capture folder"),
        (("compact", "none"), "none: there is no such capture folder"),
        (("compact", ".", "--grace", "soon"), "--grace: 'soon' is no age: write 90s, 30m, 12h, 7d or 2w"),
        (("prune", "."), "say what is to go: --keep AGE, --max SIZE or both"),
        (("prune", "none", "--keep", "1d"), "none: there is no such capture folder"),
        (("prune", ".", "--max", "much"), "--max: 'much' is no size: write 500M, 20G, 1.5T or 512Mi"),
        (
            ("proxy", "--to", "ipc://x", "--capture", "c", "--protocol", "filemq", "--curve", "k"),
            "for peers that use CURVE --client-keys and --server-key and --as must be given as well",
        ),
        (
            ("proxy", "--to", "x", "--capture", "c", "--protocol", "filemq"),
            "--to: x is no endpoint: tcp://HOST:PORT or ipc://PATH is wanted",
        ),
        (
            ("proxy", "--to", "x", "--capture", "c", "--protocol", "filenq"),
            "there is no protocol 'filenq'; the known ones are ",
        ),
        (
            (
                "proxy",
                "--to",
                "tcp://127.0.0.1:1",
                "--capture",
                "c",
                "--protocol",
                "filemq",
                "--capture-payload",
                "x",
            ),
            "--capture-payload: 'x' is no policy for payloads: write keep, cut:OCTETS, hash or omit",
        ),
        (
            (
                "proxy",
                "--to",
                "tcp://127.0.0.1:1",
                "--capture",
                "c",
                "--protocol",
                "filemq",
                "--listen",
                "tcp://*:1",
            ),
            "tcp://*:1 would be open to anybody",
        ),
    ],
)
def test_what_cannot_be_done(
    arguments: tuple[str, ...],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """One sentence with the next step, status 2, and nothing is made."""
    monkeypatch.chdir(tmp_path)
    done = specwire(capfd, "capture", *arguments)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith(f"specwire: {sentence}"), done.err
    assert list(tmp_path.iterdir()) == []
