"""Set-up: what it finds, what it does again, and what it says when it cannot go on."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import accelerator
import decoders
import system_packages
from environment import Environment, Purpose
from java import Java, find_java
from system_packages import JAVA, JAVAC, MANAGERS, VENV, SetUpError, install_packages
from tests.house.repository import ROOT


@pytest.fixture
def empty_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is the whole PATH, in a system without Java."""
    folder = tmp_path / "path"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr("java.SYSTEM_FOLDER", tmp_path / "jvm")
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose `.venv` is whole: a stamp, and a Python that runs."""
    root = tmp_path / "project"
    (root / ".venv/bin").mkdir(parents=True)
    (root / "pyproject.toml").write_text("[project]\n")
    (root / "constraints.txt").write_text("")
    program(root / ".venv/bin/python", f'exec "{sys.executable}" "$@"')
    environment = Environment(root, lock=-1)
    stamp = {"root": str(root), "python": sys.version.split()[0], "digest": environment._digest}
    (root / ".venv/set-up.json").write_text(json.dumps({**stamp, "purpose": "dev"}))
    return root


def program(path: Path, script: str) -> Path:
    """Write a shell program to `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def fake_java(path: Path, version: str) -> Path:
    """Write a `java` that says it is `version`, where Java says it."""
    return program(path, f"echo 'openjdk version \"{version}\" 2026-04-21' >&2")


def state(root: Path, *, python_is_chosen: bool = False) -> str:
    """What set-up thinks of the `.venv` of `root`."""
    return Environment(root, lock=-1).state(python_is_chosen=python_is_chosen)


def test_whole_environment_is_left_alone(project: Path) -> None:
    """The second `make` does nothing."""
    assert state(project) == "current"
    assert state(project, python_is_chosen=True) == "current"


@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt"])
def test_changed_requirements_are_installed(project: Path, name: str) -> None:
    """Installing again mends an environment whose requirements moved on."""
    (project / name).write_text("# changed\n")
    assert state(project) == "outdated"


@pytest.mark.parametrize(
    ("purpose", "expected"),
    [("run", "current"), ("codecs", "current"), ("dev", "current"), ("release", "outdated")],
)
def test_an_environment_for_more_serves_for_less(project: Path, purpose: Purpose, expected: str) -> None:
    """`make test` installs what `make run` left out; `make run` after it installs nothing."""
    assert Environment(project, lock=-1, purpose=purpose).state(python_is_chosen=False) == expected


def test_installing_again_keeps_what_was_there(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`make run` after a change of the requirements does not remove the libraries of `make test`."""
    (project / "constraints.txt").write_text("# changed\n")
    (project / "pyproject.toml").write_text("[build-system]\nrequires = []\n")
    called: list[tuple[str, ...]] = []
    monkeypatch.setattr(Environment, "call", lambda self, *words, pure=True: called.append(words))
    environment = Environment(project, lock=-1, purpose="run")
    environment.bring_up(environment.state(python_is_chosen=False))
    assert called[-1][-1] == f"{project}[dev]"
    assert state(project) == "current"


def test_unfinished_environment_is_made_anew(project: Path) -> None:
    """The stamp is written last: without it, nobody knows what is there."""
    (project / ".venv/set-up.json").unlink()
    assert state(project) == "missing"


def test_environment_without_its_python_is_made_anew(project: Path) -> None:
    """The system's Python was removed, or replaced by another release."""
    (project / ".venv/bin/python").unlink()
    (project / ".venv/bin/python").symlink_to("nowhere")
    assert state(project) == "missing"


def test_moved_environment_is_made_anew(project: Path, tmp_path: Path) -> None:
    """The programs in `.venv` name the folder they were made in."""
    moved = project.rename(tmp_path / "moved")
    assert state(moved) == "missing"


COMPILES = """
import pathlib, sys
folder = pathlib.Path("generated/demo")
pathlib.Path("log").open("a").write(" ".join(sys.argv[1:3]) + "\\n")
(folder / "_native.cpython-311.so").write_text((folder / "_native.pyx").read_text())
"""


@pytest.fixture
def sources(project: Path, empty_path: Path) -> Environment:
    """The environment of a project with one package to compile, a compiler, and a ``setup.py`` that notes its calls."""
    program(empty_path / "cc", "exit 0")
    (project / "setup.py").write_text(COMPILES)
    (project / "generated/demo").mkdir(parents=True)
    (project / "generated/demo/_native.pyx").write_text("first")
    with open(os.devnull) as lock:
        return Environment(project, lock=os.dup(lock.fileno()))


def calls(environment: Environment) -> int:
    """How often ``setup.py`` was called, each time to compile in place."""
    lines = (environment.root / "log").read_text().splitlines()
    assert set(lines) == {"-q build_ext"}
    return len(lines)


def test_packages_are_compiled_once(sources: Environment, capsys: pytest.CaptureFixture[str]) -> None:
    """The second `make` does nothing, and the first says in one line which packages are in C."""
    assert not accelerator.is_current(sources)
    accelerator.compile_packages(sources)
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("set-up: compiling the packages")
    assert re.match(r"set-up: packages in (C|Python, .*): \w+(, \w+)*", said[1])
    assert len(said) == 2
    assert accelerator.is_current(sources)
    assert calls(sources) == 1


@pytest.mark.parametrize("change", ["source", "new source", "module", "setup.py", "compiler"])
def test_what_changed_is_compiled_again(sources: Environment, empty_path: Path, change: str) -> None:
    """Sources are generated anew, a module is lost, and a compiler can go, or come."""
    accelerator.compile_packages(sources)
    folder = sources.root / "generated/demo"
    match change:
        case "source":
            (folder / "_native.pyx").write_text("second")
        case "new source":
            (folder.parent / "shared.pxd").write_text("")
        case "module":
            (folder / "_native.cpython-311.so").unlink()
        case "setup.py":
            (sources.root / "setup.py").write_text(COMPILES + "# more")
        case "compiler":
            (empty_path / "cc").unlink()
    assert not accelerator.is_current(sources)
    accelerator.compile_packages(sources)
    assert accelerator.is_current(sources)
    assert calls(sources) == 2


def test_set_up_goes_on_without_packages_in_c(
    sources: Environment, capfd: pytest.CaptureFixture[str]
) -> None:
    """Not even a broken ``setup.py`` ends it; it is not tried again until something changes."""
    (sources.root / "setup.py").write_text("raise SystemExit('nothing works here')")
    accelerator.compile_packages(sources)
    told = capfd.readouterr()
    assert "nothing works here" in told.err
    assert "set-up: they stay in Python: this failed, see above" in told.out
    assert accelerator.is_current(sources)


@pytest.fixture
def java_sources(project: Path, empty_path: Path) -> tuple[Environment, Java]:
    """The environment of a project with a Java decoder to compile, and a Java with a compiler."""
    fake_java(empty_path / "java", "17.0.1")
    program(empty_path / "javac", "exit 0")
    (project / "generated/demo").mkdir(parents=True)
    (project / "generated/demo/Decode.java").write_text("first")
    for name in decoders._COMPILING:
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("")
    # Stands in for the module that compiles: the jar is the source.
    script = (
        'echo "$@" >> log; mkdir -p generated/java; cp generated/demo/Decode.java generated/java/decoders.jar'
    )
    program(project / ".venv/bin/python", script)
    with open(os.devnull) as lock:
        environment = Environment(project, lock=os.dup(lock.fileno()))
    java = find_java()
    assert java is not None
    return environment, java


def test_java_decoders_are_compiled_once(
    java_sources: tuple[Environment, Java], empty_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next `make` does nothing; one after a change, or after the jar was lost, compiles again."""
    environment, java = java_sources
    monkeypatch.setenv("PATH", f"{empty_path}:/usr/bin:/bin")
    jar = environment.root / decoders.JAR
    for number in (1, 2, 3):
        (environment.root / "generated/demo/Decode.java").write_text(f"code {number // 2}")
        if number == 3:
            jar.unlink()  # the code is as it was
        assert not decoders.is_current(environment, java)
        decoders.compile_decoders(environment, java)
        assert decoders.is_current(environment, java)
        assert jar.read_text() == f"code {number // 2}"
    lines = (environment.root / "log").read_text().splitlines()
    assert lines == [f"-m {decoders.MODULE} --javac {empty_path / 'javac'}"] * 3


def test_set_up_goes_on_without_a_javac(
    java_sources: tuple[Environment, Java], empty_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line says what that means; it is tried again once there is one."""
    environment, java = java_sources
    (empty_path / "javac").unlink()
    decoders.compile_decoders(environment, java)
    assert capsys.readouterr().out.startswith("set-up: no javac beside Java: Spark decodes with Arrow")
    assert decoders.is_current(environment, java)
    program(empty_path / "javac", "exit 0")
    assert not decoders.is_current(environment, java)


def test_set_up_goes_on_where_the_compiler_fails(
    java_sources: tuple[Environment, Java], capsys: pytest.CaptureFixture[str]
) -> None:
    """It is not tried again until something changes."""
    environment, java = java_sources
    program(environment.root / ".venv/bin/python", "exit 1")
    decoders.compile_decoders(environment, java)
    assert "set-up: Spark decodes with Arrow: this failed, see above" in capsys.readouterr().out
    assert decoders.is_current(environment, java)


@pytest.mark.parametrize(
    ("version", "found"),
    [("17.0.15", True), ("21-ea", True), ("25", True), ("11.0.2", False), ("1.8.0_422", False)],
)
def test_java_on_the_path_must_be_new_enough(empty_path: Path, version: str, found: bool) -> None:
    """Spark starts on 17 or newer; the version is what the program says of itself."""
    fake_java(empty_path / "java", version)
    java = find_java()
    assert (java is not None) == found
    assert java is None or (java.version, java.home) == (version, "")


def test_java_home_goes_first(empty_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A usable JAVA_HOME is what Spark takes, so it is what set-up reports."""
    fake_java(empty_path / "java", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    program_of_home = fake_java(tmp_path / "jdk/bin/java", "21.0.1")
    assert find_java() == Java(str(program_of_home), "21.0.1", home="")


def test_unusable_java_home_is_replaced(
    empty_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where JAVA_HOME is too old, programs are told of the newest Java there is."""
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "old/bin/java", "11").parent.parent))
    for version in ("17.0.1", "21.0.1"):
        fake_java(tmp_path / f"jvm/java-{version}/bin/java", version)
    java = find_java()
    assert java is not None
    assert java.home == str(tmp_path / "jvm/java-21.0.1")


def test_found_java_is_remembered(empty_path: Path, tmp_path: Path) -> None:
    """A later call sees without running it whether the same Java would be started."""
    fake_java(empty_path / "java", "17.0.1")
    file = tmp_path / "java.json"
    found = find_java()
    assert found is not None
    found.write(file)
    assert Java.read(file) == found
    assert found.still_there()
    (empty_path / "java").unlink()
    assert not found.still_there()


@pytest.mark.parametrize(
    ("listing", "chosen"),
    [
        ("openjdk-11-jre-headless - old\nopenjdk-21-jre-headless - new\nopenjdk-17-jre-headless - old", 21),
        ("", 17),
    ],
)
def test_newest_java_is_chosen(empty_path: Path, listing: str, chosen: int) -> None:
    """The lists say which is newest; where they are empty the oldest usable one is named to the user."""
    program(empty_path / "apt-cache", f"printf '%s\\n' '{listing}'")
    assert JAVA.package(MANAGERS[0]) == f"openjdk-{chosen}-jre-headless"
    assert JAVAC.package(MANAGERS[0]) == f"openjdk-{chosen}-jdk-headless"


def test_root_installs(empty_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lists are refreshed first, then everything is installed in one call."""
    log = tmp_path / "log"
    program(empty_path / "apt-get", f'echo "$@" >> "{log}"')
    program(empty_path / "apt-cache", "echo openjdk-17-jre-headless - Java")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    with open(os.devnull) as lock:
        install_packages([JAVA, VENV], lock=lock.fileno())
    venv = f"python3.{sys.version_info.minor}-venv"
    lines = log.read_text().splitlines()
    assert lines[0].startswith("update")
    assert lines[1].startswith("install -y")
    assert lines[1].endswith(f"openjdk-17-jre-headless {venv}")


@pytest.mark.parametrize("sudo", ["", "exit 1"])
def test_others_are_told_what_to_install(
    empty_path: Path, sudo: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without sudo, or with one that would ask, one sentence names the command."""
    program(empty_path / "apt-get", "exit 9")
    program(empty_path / "apt-cache", "echo openjdk-17-jre-headless - Java")
    if sudo:
        program(empty_path / "sudo", sudo)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(SetUpError, match=r"apt-get install openjdk-17-jre-headless$"):
        install_packages([JAVA], lock=-1)


def test_unknown_system_is_told_what_is_missing(empty_path: Path) -> None:
    """A system whose package manager is not known gets the sentence without a command."""
    with pytest.raises(SetUpError, match=r"^Java 17 or newer .* is missing: install it"):
        install_packages([JAVA], lock=-1)


def test_unusable_python_is_refused() -> None:
    """`PYTHON=` names the Python to use; one that is too old is not replaced behind the user's back."""
    variables = {**os.environ, "PYTHON": "false"}
    run = subprocess.run(
        [ROOT / "scripts/setup.sh"], env=variables, capture_output=True, text=True, check=False
    )
    assert run.returncode == 1
    assert run.stderr == (
        "set-up: PYTHON=false is not a Python 3.11 or newer; name another or leave PYTHON unset\n"
    )


def test_make_lists_every_target() -> None:
    """`make` alone prints one line for each target."""
    run = subprocess.run(["make", "-s"], cwd=ROOT, capture_output=True, text=True, check=True)
    listed = re.findall(r"^  make ([\w-]+) +\S", run.stdout, re.MULTILINE)
    declared = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert declared is not None
    assert listed == declared[1].split()


def test_every_manager_is_complete() -> None:
    """Each row can refresh, search and install, and names Java by version."""
    for manager in MANAGERS:
        assert manager.refresh and manager.search and manager.install
        assert "{version}" in manager.java and "{version}" in manager.compiler
    assert system_packages.OLDEST_JAVA == 17
