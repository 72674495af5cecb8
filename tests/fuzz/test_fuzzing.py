"""The parts of fuzzing: how inputs are coded and changed, that checks find what is wrong, what a run reports."""

from __future__ import annotations

import importlib.util
import random
import re
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specwire.generated import filemq
from specwire.generated.errors import DecodeError
from tests.fuzz import reproduce, run
from tests.fuzz.codecs import Finding, check_frames
from tests.fuzz.corpus import CORPUS, FOUND, inputs, name_of, store
from tests.fuzz.libfuzzer import Outcome, fuzz
from tests.fuzz.mutation import changed, crossed
from tests.fuzz.pieces import join, split
from tests.fuzz.targets import TARGETS

NOM = [b"\xaa\xa3\x07" + bytes(8)]
NO_ATHERIS = pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason=run.MISSING)


# Pieces


@given(st.lists(st.binary(max_size=600)))
def test_pieces_are_what_was_joined(pieces: list[bytes]) -> None:
    assert split(join(pieces)) == pieces


@given(st.binary(max_size=600))
def test_any_octets_are_pieces(octets: bytes) -> None:
    assert split(join(split(octets))) == split(octets)


@pytest.mark.parametrize(
    ("octets", "pieces"),
    [
        (b"", []),
        (b"\x00", [b""]),
        (b"\x02ab\x00\x01c", [b"ab", b"", b"c"]),
        (b"\x05ab", [b"ab"]),
        (b"\xff\x00\x02ab\x01c", [b"ab", b"c"]),
        (b"\xff\x01", [b""]),
    ],
)
def test_what_pieces_there_are(octets: bytes, pieces: list[bytes]) -> None:
    assert split(octets) == pieces


@given(st.lists(st.binary(max_size=9)), st.lists(st.binary(max_size=9)), st.integers(), st.integers(0, 60))
def test_changes_keep_to_the_longest(one: list[bytes], other: list[bytes], seed: int, longest: int) -> None:
    chance = random.Random(seed)
    inside = changed(join(one), longest, chance, 1, lambda octets, most: (octets + b"x")[:most])
    assert len(inside) <= longest
    assert len(crossed(join(one), join(other), longest, chance)) <= longest


def test_a_change_is_made_inside_a_piece() -> None:
    """The other frames are what they were, whatever becomes of one."""
    frames = [b"one", b"two", b"three"]
    for seed in range(50):
        found = split(changed(join(frames), 100, random.Random(seed), 1, lambda octets, _: octets * 2))
        assert len(set(frames) - set(found)) <= 1


# Checks


def broken(**replaced: Any) -> SimpleNamespace:
    """A build of filemq with a fault."""
    return SimpleNamespace(**{"decode": filemq.decode, **replaced})


def raises_key_error(frames: list[bytes], **options: Any) -> object:
    raise KeyError("tag")


def says_nothing(frames: list[bytes], **options: Any) -> object:
    raise DecodeError(
        protocol="filemq", message_name=None, field=None, frame=7, offset=9, kind="tag", expected="x", found="y",
        rule="FILEMQ v2",
    )  # fmt: skip


def forgets_when_strict(frames: list[bytes], **options: Any) -> object:
    return filemq.Hugz() if options.get("strict") else filemq.decode(frames, **options)


def forgets_views(frames: list[bytes], **options: Any) -> object:
    return filemq.decode(frames, **options) if type(frames) is list else filemq.Hugz()


def has_no_limits(frames: list[bytes], **options: Any) -> object:
    return filemq.decode(frames)


def counts_up(frames: list[bytes], **options: Any) -> object:
    message = filemq.decode(frames, **options)
    assert isinstance(message, filemq.Nom)
    return filemq.Nom(message.credit + 1)


@pytest.mark.parametrize(
    ("decode", "found"),
    [
        (raises_key_error, KeyError),
        (says_nothing, (AssertionError, IndexError)),
        (forgets_when_strict, Finding),
        (forgets_views, Finding),
        (has_no_limits, AttributeError),
        (counts_up, Finding),
    ],
)
def test_a_fault_is_found(decode: Any, found: Any) -> None:
    with pytest.raises(found):
        check_frames(filemq, broken(decode=decode), [b"\xaa\xa3\x07" + b"\x02" * 8])


# The corpus and the report


def test_the_corpus_is_small_and_of_known_targets() -> None:
    files = [path for target in TARGETS for path in [*inputs(target), *inputs(target, FOUND)]]
    assert {path.name for folder in (CORPUS, FOUND) for path in folder.iterdir()} <= set(TARGETS)
    assert sum(path.stat().st_size for path in files) < 1_000_000
    assert 100 < len(files) < 1_500


def test_inputs_are_named_by_their_octets(tmp_path: Path) -> None:
    store(tmp_path / "t", [b"a", b"b", b"a"])
    assert [path.name for path in inputs("t", tmp_path)] == sorted(map(name_of, (b"a", b"b")))


def outcome(folder: Path, findings: tuple[Path, ...] = (), status: int = 0) -> Outcome:
    return Outcome("codec-flux", 1234, 30, 5, 400, 7, findings, status, folder / "log")


def test_a_finding_is_shown_with_the_way_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    crash = tmp_path / "crash-1"
    crash.write_bytes(b"\x01\xff")
    run.report([outcome(tmp_path, (crash,), 77)], 3.0)
    text = capsys.readouterr().out
    assert re.search(r"codec-flux +1,234 +30 +5 +400 +7 +1\n", text)
    assert "codec-flux: 01ff\n" in text
    assert text.rstrip().endswith(f"-m tests.fuzz.reproduce codec-flux {crash}")
    assert run.exit_status([outcome(tmp_path, (crash,), 77)]) == 1
    assert run.exit_status([outcome(tmp_path, (), 1)]) == 2
    assert run.exit_status([outcome(tmp_path)]) == 0


def test_a_worker_that_fails_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run.report([outcome(tmp_path, (), 1)], 3.0)
    assert f"codec-flux: the worker ended with status 1; see {tmp_path / 'log'}" in capsys.readouterr().out


@pytest.mark.parametrize(("arguments", "status"), [([], 2), (["--if-possible"], 0)])
def test_without_atheris_there_is_one_line(
    arguments: list[str], status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert run.main(arguments) == status
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("fuzz: atheris is not installed") and "SPECWIRE_FUZZ_COUNT" in line


def test_an_input_is_run_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "input"
    path.write_bytes(join(NOM))
    assert reproduce.main(["codec-filemq", str(path)]) == 0
    assert f"input: {NOM[0]!r}" in capsys.readouterr().out
    assert reproduce.main(["codec-nobody", str(path)]) == 2


def test_time_is_divided_by_what_is_left(tmp_path: Path) -> None:
    """A target that ends at once leaves its time to those behind it."""
    asked: list[int] = []

    def act(seconds: int) -> Outcome:
        asked.append(seconds)
        return outcome(tmp_path)

    shares = run.Shares(time.monotonic() + 1_000, 4)
    for _ in range(4):
        shares.spend(act)
    # A second is kept for the start of the first; two run at once, and the last is alone.
    assert asked == [499, 667, 1_000, 1_000]
    late = run.Shares(time.monotonic() - 10, 2)
    late.spend(act)
    assert asked[-1] == 1


@NO_ATHERIS
def test_a_target_is_fuzzed(tmp_path: Path) -> None:
    found = fuzz("stream-zmtp", 1, tmp_path)
    assert found.status == 0, found.log.read_text()
    assert found.executions > 100
    assert found.edges > 50
