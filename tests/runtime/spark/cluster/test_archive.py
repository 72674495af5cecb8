"""The archive: the same octets for the same files, and a Python in it that sees nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from specwire.runtime.spark.cluster.building import launcher, write_archive
from specwire.runtime.spark.cluster.package import python_version

BASE = str(getattr(sys, "_base_executable", sys.executable))


def make_files(folder: Path, octets: bytes, mtime: int, mode: int) -> list[tuple[str, Path]]:
    """Make two modules of that age and mode."""
    folder.mkdir()
    files = []
    for name in ("b.py", "a.py"):
        place = folder / name
        place.write_bytes(octets)
        place.chmod(mode)
        os.utime(place, (mtime, mtime))
        files.append((name, place))
    return files


def unpack(folder: Path, files: list[tuple[str, Path]]) -> Path:
    """Write an archive and unpack it into a folder with a space in its name."""
    write_archive(files, folder / "archive.tar.gz")
    with tarfile.open(folder / "archive.tar.gz") as tar:
        tar.extraction_filter = lambda member, path: member  # modes as they are, in every release of Python
        tar.extractall(folder / "executor 1")
    return folder / "executor 1"


def run(program: Path, code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the launcher as Spark does, with these variables and no others."""
    command = [str(program), "-c", code]
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=60, check=False)


def test_the_same_files_give_the_same_octets(tmp_path: Path) -> None:
    """Whenever they were written, in whatever order they are given, and whoever may read them."""
    one, other = tmp_path / "one.tar.gz", tmp_path / "other.tar.gz"
    write_archive(make_files(tmp_path / "1", b"x = 1\n", 1, 0o600), one)
    write_archive(reversed(make_files(tmp_path / "2", b"x = 1\n", 10**9, 0o755)), other)
    assert one.read_bytes() == other.read_bytes()
    with tarfile.open(one) as tar:
        entries = {entry.name: (entry.mode, entry.mtime, entry.uname) for entry in tar}
    assert entries == {
        "bin/python": (0o755, 0, ""),
        "site-packages/a.py": (0o644, 0, ""),
        "site-packages/b.py": (0o644, 0, ""),
    }


def test_its_python_sees_the_archive_and_what_spark_names(tmp_path: Path) -> None:
    """Wherever it is unpacked: not this environment's modules, not those of the working folder."""
    root = unpack(tmp_path, make_files(tmp_path / "1", b"x = 1\n", 1, 0o644))
    spark = tmp_path / "spark"
    spark.mkdir()
    code = "import sys, a; print(a.__file__, *sys.path, sep='\\n')"
    ran = run(root / "bin/python", code, PATH=f"{Path(BASE).parent}:/usr/bin:/bin", PYTHONPATH=str(spark))
    assert ran.stderr == ""
    module, *path = ran.stdout.splitlines()
    site = root.resolve() / "site-packages"
    assert module == str(site / "a.py")
    assert path[:2] == [str(site), str(spark)]
    assert not [entry for entry in path[2:] if "-packages" in entry]


def test_the_interpreter_can_be_named(tmp_path: Path) -> None:
    """Where it is not on the executors' PATH."""
    root = unpack(tmp_path, make_files(tmp_path / "1", b"", 1, 0o644))
    ran = run(root / "bin/python", "import a", PATH="/usr/bin:/bin", SPECWIRE_PYTHON=BASE)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_wrong_interpreter_is_refused_with_a_sentence(tmp_path: Path) -> None:
    """Compiled modules would fail to load, one by one."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "dirname"):
        (programs / name).symlink_to(f"/bin/{name}" if Path(f"/bin/{name}").exists() else f"/usr/bin/{name}")
    for name in ("python3", f"python{python_version()}"):
        (programs / name).write_text("#!/bin/sh\necho 3.9 linux-x86_64\n")
        (programs / name).chmod(0o755)
    root = unpack(tmp_path, [])
    ran = run(root / "bin/python", "import a", PATH=str(programs))
    assert ran.returncode == 1
    assert f"there is no Python {python_version()} for" in ran.stderr
    assert "spark.executorEnv.SPECWIRE_PYTHON" in ran.stderr


@pytest.mark.skipif(not Path("/bin/dash").exists(), reason="dash is not installed here")
def test_the_launcher_is_plain_shell() -> None:
    """Executors may have no bash."""
    checked = subprocess.run(
        ["/bin/dash", "-n"], input=launcher(), capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stderr) == (0, "")
