"""Files come into an output folder all at once or not at all, whatever interrupts the run."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from specwire.runtime.spark.errors import InputError, JobError
from specwire.runtime.spark.pipeline import commit
from specwire.runtime.spark.pipeline.commit import (
    ASIDE,
    JOURNAL,
    LOCK,
    STAGING,
    Area,
    Run,
    begin,
    visible_files,
)
from specwire.runtime.spark.pipeline.manifest import Manifest, read_manifest
from specwire.runtime.spark.pipeline.store import partition, partition_date
from tests.runtime.spark.pipeline.faults import Killed, kill_before_each_call

TABLE = "typed/filemq/Nom"


def stage(run: Run, area: Area, table: str, *rows: int, day: str = "2026-01-02") -> None:
    """Write rows as Spark does: below a partition folder, with litter around."""
    folder = run.folder(area, table) / f"date={day}"
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"row": list(rows)}), folder / f"part-{len(list(folder.iterdir()))}.parquet")
    (folder / "._SUCCESS.crc").write_text("litter")
    (folder.parent / "_SUCCESS").write_text("")


def rows_of(out: Path, table: str) -> list[int]:
    """Return the rows that a reader of the folder sees."""
    found: list[int] = []
    for path in visible_files(out / table):
        found += pq.read_table(path)["row"].to_numpy().tolist()
    return sorted(found)


def first_run(out: Path) -> None:
    """Two rows that stay, one that is open."""
    with begin(out) as run:
        stage(run, Area.ADDED, TABLE, 1, 2)
        stage(run, Area.OPEN, "answers/requests", 3)
        run.write("summary.json", b"first")
        run.commit(run.before)


def second_run(out: Path) -> None:
    """One row more; what was open is replaced."""
    with begin(out) as run:
        stage(run, Area.ADDED, TABLE, 4)
        stage(run, Area.ADDED, "answers/requests", 3)
        stage(run, Area.OPEN, "answers/requests", 5, 6)
        run.replace(visible_files(out / "answers/requests"))
        run.write("summary.json", b"second")
        run.commit(run.before)


def state_of(out: Path) -> tuple[int, list[int], list[int], bytes]:
    """Return what a reader sees of both runs."""
    summary = (out / "summary.json").read_bytes()
    return read_manifest(out).run, rows_of(out, TABLE), rows_of(out, "answers/requests"), summary


FIRST = (1, [1, 2], [3], b"first")
SECOND = (2, [1, 2, 4], [3, 5, 6], b"second")


def test_runs_follow_one_another(tmp_path: Path) -> None:
    """What was open goes, the rest stays; names tell the run; rows are counted."""
    out = tmp_path / "out"
    first_run(out)
    assert state_of(out) == FIRST
    second_run(out)
    assert state_of(out) == SECOND
    assert {path.name for path in visible_files(out / "answers")} == {
        "run-000002-0000.parquet",
        "open-000002-0000.parquet",
    }
    assert read_manifest(out).rows == {"answers/requests": 3, TABLE: 3}
    assert sorted(path.name for path in out.iterdir() if path.name[0] == ".") == [LOCK]
    assert out.stat().st_mode & 0o777 == 0o700


def test_a_run_without_commit_leaves_nothing(tmp_path: Path) -> None:
    """Whether it ends well or not."""
    out = tmp_path / "out"
    first_run(out)
    with begin(out) as run:
        stage(run, Area.ADDED, TABLE, 9)
    with pytest.raises(KeyboardInterrupt), begin(out) as run:
        stage(run, Area.ADDED, TABLE, 9)
        raise KeyboardInterrupt
    assert state_of(out) == FIRST
    assert sorted(path.name for path in out.iterdir() if path.name[0] == ".") == [LOCK]


def test_a_killed_run_is_all_or_nothing(tmp_path: Path) -> None:
    """Killed before each call that changes the folder; then another begins, and the folder is old or new."""
    base = tmp_path / "base"
    first_run(base)
    seen: list[int] = []
    for calls, out in kill_before_each_call(base, second_run):
        with begin(out):
            pass
        state = state_of(out)
        assert state in (FIRST, SECOND), f"killed at call {calls}"
        seen.append(state[0])
    assert seen == sorted(seen), "once a run counts, a later death does not undo it"
    assert seen[0] == 1 and seen[-1] == 2 and len(seen) > 10


def test_what_a_killed_run_still_writes_is_not_found(tmp_path: Path) -> None:
    """Spark on another machine writes on after its program was killed: not into the run that has the number next."""
    out = tmp_path / "out"
    first_run(out)
    with begin(out) as killed:
        pass
    with begin(out) as run:
        assert (run.number, run.staging.parent) == (killed.number, killed.staging.parent)
        stage(run, Area.ADDED, TABLE, 4)
        stage(killed, Area.ADDED, TABLE, 9)
        run.commit(run.before)
    assert rows_of(out, TABLE) == [1, 2, 4]
    stage(killed, Area.ADDED, TABLE, 9)
    assert rows_of(out, TABLE) == [1, 2, 4]
    with begin(out):
        assert not killed.staging.exists()


def test_a_killed_first_run_leaves_the_folder_ours(tmp_path: Path) -> None:
    """Killed before each call that changes the folder, the journal's among them; another run can begin."""
    seen: list[int] = []
    asides = 0
    for calls, out in kill_before_each_call(tmp_path / "out", first_run):
        asides += (out / ASIDE).exists()
        with begin(out):
            pass
        seen.append(read_manifest(out).run)
        if seen[-1]:
            assert state_of(out) == FIRST, f"killed at call {calls}"
        assert not (out / ASIDE).exists()
    assert seen == sorted(seen) and seen[0] == 0 and seen[-1] == 1
    assert asides >= 3, "before it is whole, before it is synced and before it is renamed"


@pytest.fixture
def stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder whose second run has its journal in place and has moved nothing."""
    out = tmp_path / "out"
    first_run(out)
    with monkeypatch.context() as patched:

        def die(*_: object) -> None:
            raise Killed

        patched.setattr(commit, "perform", die)
        with pytest.raises(Killed):
            second_run(out)
    assert (out / JOURNAL).exists() and state_of(out) == FIRST
    return out


@pytest.mark.parametrize(
    ("octets", "sentence"),
    [
        (b"", "the journal of an unfinished run is damaged"),
        (b"\0" * 64, "the journal of an unfinished run is damaged"),
        (
            b'{"run": 2, "moves": [["\xff", "b"]], "removals": []}',
            "the journal of an unfinished run is damaged",
        ),
        (b'{"run": 2}', "missing required field `moves`"),
        (
            b'{"run": 2, "moves": [["a", "../b"]], "removals": []}',
            r"it names \.\./b, which is outside the folder",
        ),
        (b'{"run": 2, "moves": [], "removals": ["/b"]}', "it names /b, which is outside the folder"),
    ],
)
def test_a_damaged_journal_is_one_sentence(stopped: Path, octets: bytes, sentence: str) -> None:
    """Nothing is done by it, and what was staged stays for whoever looks into it."""
    (stopped / JOURNAL).write_bytes(octets)
    with pytest.raises(InputError, match=rf"\.journal\.json: .*{sentence}"), begin(stopped):
        pass
    assert state_of(stopped) == FIRST
    assert list(stopped.glob(f"{STAGING}*"))


def test_a_journal_of_version_0_1_is_completed(tmp_path: Path) -> None:
    """Written by hand, as that version wrote it; a file is in place already, and one is removed."""
    out = tmp_path / "out"
    first_run(out)
    staged = out / ".staging-000002-0a1b2c3d"
    for path in (staged / "run" / TABLE / "part-0.parquet", out / TABLE / "run-000002-0000.parquet"):
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"row": [8]}), path)
    (out / ".journal.json").write_text(
        '{"run":2,"moves":['
        f'[".staging-000002-0a1b2c3d/run/{TABLE}/part-1.parquet","{TABLE}/run-000002-0000.parquet"],'
        f'[".staging-000002-0a1b2c3d/run/{TABLE}/part-0.parquet","{TABLE}/run-000002-0001.parquet"]],'
        f'"removals":["{TABLE}/date=2026-01-02/run-000001-0000.parquet"]}}'
    )
    with begin(out):
        assert rows_of(out, TABLE) == [8, 8]
        assert not staged.exists() and not (out / JOURNAL).exists()


def test_a_lost_file_does_not_count_as_moved(stopped: Path) -> None:
    """A committed file that is neither staged nor in place is named, and the manifest stays that of before."""
    lost = next(path for path in visible_files(next(stopped.glob(f"{STAGING}*"))) if TABLE in str(path))
    lost.unlink()
    for _ in range(2):
        with (
            pytest.raises(JobError, match=r"Nom/date=.*/run-000002-0000\.parquet: run 2 .* lost"),
            begin(stopped),
        ):
            pass
        assert state_of(stopped) == FIRST


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="tells a descriptor's path by /proc")
def test_all_that_a_journal_names_is_synced_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The staged files, and each folder from them up to the output folder and that which it was made in."""
    out = tmp_path / "deep" / "out"
    synced: list[str] = []
    real = os.fsync

    def note(descriptor: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    first_run(out)
    before = {Path(name) for name in synced[: synced.index(str(out / ASIDE))]}
    (staging,) = {
        parent for path in before for parent in path.parents if parent.name.startswith(f"{STAGING}000001-")
    }
    partition = staging / Area.ADDED / TABLE / "date=2026-01-02"
    up = {partition, *(path for path in partition.parents if path.is_relative_to(tmp_path))}
    files = {partition / "part-0.parquet", staging / "files" / "summary.json"}
    assert up | files | {staging / "files"} <= before


def test_a_failing_disk_is_told_while_recovering(stopped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one sentence; the next try finishes."""
    with monkeypatch.context() as patched:

        def fail(source: Path, _: Path) -> None:
            raise OSError(5, os.strerror(5), str(source))

        patched.setattr(os, "replace", fail)
        with pytest.raises(JobError, match="Input/output error"), begin(stopped):
            pass
    with begin(stopped):
        pass
    assert state_of(stopped) == SECOND


def test_a_second_run_is_refused(tmp_path: Path) -> None:
    """While the first is at work; after it there is room."""
    out = tmp_path / "out"
    with begin(out), pytest.raises(InputError, match="another run is at work there"), begin(out):
        pass
    first_run(out)
    assert read_manifest(out).run == 1


def test_a_first_run_that_fails_leaves_no_folder(tmp_path: Path) -> None:
    """Nor does one that has nothing to do; a folder that was there with something in it stays."""
    with pytest.raises(KeyboardInterrupt), begin(tmp_path / "out") as run:
        stage(run, Area.ADDED, TABLE, 9)
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_one_sentence(tmp_path: Path) -> None:
    """And leaves what was there."""
    out = tmp_path / "out"
    first_run(out)
    with pytest.raises(JobError, match=r"part-0\.parquet: No space left on device"), begin(out) as run:
        raise OSError(28, os.strerror(28), str(run.staging / "part-0.parquet"))
    assert state_of(out) == FIRST


def test_a_lost_connection_is_none_of_the_disk(tmp_path: Path) -> None:
    """It is left as it is for whoever knows where Spark was; the folder is as it was."""
    out = tmp_path / "out"
    first_run(out)
    with pytest.raises(ConnectionRefusedError), begin(out) as run:
        stage(run, Area.ADDED, TABLE, 9)
        raise ConnectionRefusedError(111, os.strerror(111))
    assert state_of(out) == FIRST


def test_a_foreign_folder_is_left_alone(tmp_path: Path) -> None:
    """Only an empty folder or an earlier output is written to."""
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match="not an earlier output, it is left alone"), begin(tmp_path):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_file_is_not_replaced(tmp_path: Path) -> None:
    """Nor taken for a folder; and a folder that cannot be made is told."""
    (tmp_path / "out").write_text("")
    with pytest.raises(InputError, match="a file; name a folder for the output"), begin(tmp_path / "out"):
        pass
    with pytest.raises(InputError, match="the output folder cannot be made"), begin(tmp_path / "out" / "b"):
        pass


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "not the manifest of a pipeline's output"),
        ('{"asked": {"mode": "\xff"}}', "not the manifest of a pipeline's output"),
        ('{"format": 2}', "has format 2 and this version"),
    ],
)
def test_a_manifest_of_another_kind_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    """Another version's output is not worked on."""
    (tmp_path / "manifest.json").write_text(text, "latin-1")
    with pytest.raises(InputError, match=sentence), begin(tmp_path):
        pass


def test_a_manifest_is_read_as_written(tmp_path: Path) -> None:
    """All of it."""
    manifest = Manifest(run=3, answered=2, rows={TABLE: 1})
    (tmp_path / "manifest.json").write_bytes(manifest.to_json())
    assert read_manifest(tmp_path) == manifest


def test_the_partition_is_that_of_the_table() -> None:
    """The output folder may be inside a partition of something else."""
    out = Path("/lake/date=2020-01-01/protocol=x/out")
    file = out / "answers/requests/protocol=flux/date=2026-11-28/run-000001-0000.parquet"
    assert (partition(file, "protocol"), partition_date(file)) == ("flux", "2026-11-28")
