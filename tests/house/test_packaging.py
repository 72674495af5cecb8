"""What a user installs: the wheel holds all code as regular files, and builds from the source archive."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from importlib import import_module
from importlib.metadata import distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version

import specwire
from dist import VERSION
from tests.house.repository import LINKED, ROOT, has_compiler, is_checkout, is_support, product_files

BUILT_FROM = (*LINKED, "src", "pyproject.toml", "setup.py", "README.md", "LICENSE")
COMPILED = "zre"
"""The package that is compiled for these tests: one is enough, and all of them take minutes."""
BROKEN = "flux"
"""One whose source in Cython has a fault."""
JAR = "generated/java/decoders.jar"
STUB = b"what a Java compiler made"
"""Stands for the jar of decoders, which is there where somebody compiled it: a build takes it as it is."""
NEEDS_COMPILER = pytest.mark.skipif(not has_compiler(), reason="no C compiler, or no headers of Python")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the source archive, and the wheel from it, without a network; return the folder of both."""
    folder = tmp_path_factory.mktemp("packaging")
    clone = folder / "clone"
    for path in product_files():
        name = path.relative_to(ROOT)
        if name.parts[0] in BUILT_FROM:
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, clone / name)
    for path in clone.glob("**/*.pyx"):
        if path.parent.name == BROKEN:
            path.write_text("def broken(:")
        elif path.parent.name != COMPILED and not path.with_suffix(".pxd").exists():
            path.write_text('BUILD = "of another input"')
    for link in (*(ROOT / "src/specwire").iterdir(), *(ROOT / "generated").iterdir()):
        if link.is_symlink():
            (clone / link.relative_to(ROOT)).symlink_to(os.readlink(link))
    (clone / JAR).write_bytes(STUB)
    compiler = folder / "cc"
    compiler.write_text(
        f'#!/bin/sh\nexec {os.environ.get("CC", "cc")} "$@" -O0\n'
    )  # nobody measures this build
    compiler.chmod(0o755)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(clone)]
    run = subprocess.run(
        command,
        env={**os.environ, "CC": str(compiler), VERSION: specwire.__version__},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    (folder / "log").write_text(run.stdout + run.stderr)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    """The one wheel that was built."""
    (wheel,) = built.glob("*.whl")
    return wheel


@pytest.mark.slow
def test_wheel_holds_the_code(wheel: Path) -> None:
    """Every source, grammar and template is in the wheel; a new package needs no list to be found."""
    kept = {".java", ".py", ".pyx", ".pxd", ".lark", ".j2", ".abnf", ".toml", ".html", ".css", ".js"}
    ours = [path for path in product_files() if path.suffix in kept and is_code(path)]
    wanted = {f"specwire/{path.relative_to(ROOT)}" for path in ours}
    wanted |= {f"specwire/{installed(path)}" for path in ours}
    with zipfile.ZipFile(wheel) as archive:
        assert wanted | {"specwire/__init__.py", "specwire/py.typed"} <= set(archive.namelist())


@pytest.mark.slow
def test_wheel_holds_the_jar(wheel: Path) -> None:
    """The decoders in Java come along where they were compiled, by way of the source archive."""
    with zipfile.ZipFile(wheel) as archive:
        assert archive.read(f"specwire/{JAR}") == STUB


@pytest.mark.slow
def test_wheel_holds_nothing_else(wheel: Path) -> None:
    """No bare `generator` or `runtime` lands in site-packages, and nothing is a link."""
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.partition("/")[0] for name in archive.namelist()}
        kinds = {stat.S_IFMT(entry.external_attr >> 16) for entry in archive.infolist()}
    assert tops == {"specwire", f"specwire-{specwire.__version__}.dist-info"}
    assert kinds <= {stat.S_IFREG, 0}


@pytest.mark.slow
def test_source_archive_holds_regular_files(built: Path) -> None:
    """The archive unpacks where links cannot be made."""
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        assert not [member.name for member in tar if member.issym() or member.islnk()]


@pytest.fixture(scope="module")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, unpacked as an installation would be."""
    folder = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def run_installed(unpacked: Path, here: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the unpacked wheel's command line in the folder `here`, without the repository."""
    code = (
        f"import sys; sys.path.insert(0, {str(unpacked)!r});"
        "from specwire.runtime.cli import main; print(main.__file__);"
        f"main.main({list(arguments)!r})"
    )
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=here, timeout=120)


@pytest.mark.slow
def test_wheel_works_alone(unpacked: Path, tmp_path: Path) -> None:
    """Unpacked anywhere, the package runs, its command line included, without the repository."""
    assert run_installed(unpacked, tmp_path, "--version").stdout.splitlines() == [
        str(unpacked / "specwire/runtime/cli/main.py"),
        f"specwire {specwire.__version__}",
    ]


@pytest.mark.slow
def test_wheel_brings_its_grammars(unpacked: Path, tmp_path: Path) -> None:
    """Where a project has no grammars, those of the wheel are compiled; nothing is written beside them."""
    run = run_installed(unpacked, tmp_path, "check", "zre")
    assert run.returncode == 0 and "1 protocol: 0 errors" in run.stderr, run.stderr
    run = run_installed(unpacked, tmp_path, "generate", "zre")
    assert run.returncode == 2 and "name a folder for the packages with --out" in run.stderr
    run = run_installed(unpacked, tmp_path, "generate", "zre", "--out", "wire")
    assert run.returncode == 0, run.stderr
    committed = ROOT / "generated" / "zre"
    for path in (tmp_path / "wire" / "zre").iterdir():
        assert path.read_bytes() == (committed / path.name).read_bytes()
    code = (
        f"import sys; sys.path.insert(0, {str(unpacked)!r}); from wire import zre;"
        "print(zre.decode([bytes.fromhex('aaa106020001')]), zre.machine.__name__)"
    )
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, timeout=120)
    assert run.stdout == "Ping(version=2, sequence=1) wire.zre.machine\n", run.stderr


def own_lines(text: str) -> list[str]:
    """What our own part of the build says."""
    return [line for line in text.splitlines() if line.startswith("specwire: ")]


@pytest.mark.slow
@NEEDS_COMPILER
def test_wheel_holds_what_could_be_compiled(built: Path, wheel: Path) -> None:
    """A package whose C cannot be made is left out, with one line; no C source and no stray comes along."""
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    sources = [installed(path) for path in product_files() if path.suffix == ".pyx" and is_code(path)]
    modules = {f"specwire/{path.with_suffix('')}{suffix}" for path in sources}
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {name for name in names if name.endswith(suffix)} == modules - {
        f"specwire/generated/{BROKEN}/_native{suffix}"
    }
    assert not [name for name in names if name.endswith((".c", ".o"))]
    assert own_lines((built / "log").read_text()) == [
        f"specwire: specwire.generated.{BROKEN}._native is left out, its package stays in Python: see above"
    ]


@pytest.mark.slow
@NEEDS_COMPILER
def test_installed_packages_choose_their_build(unpacked: Path, tmp_path: Path) -> None:
    """C where it fits; Python where nothing was compiled, or of another input."""
    run = run_installed(unpacked, tmp_path, "show", "builds", "--json")
    reasons = json.loads(run.stdout.partition("\n")[2])
    assert reasons.pop(COMPILED) == ""
    assert reasons.pop(BROKEN) == "not compiled"
    assert set(reasons.values()) == {"compiled before the package was regenerated"}
    code = f"import sys; sys.path.insert(0, {str(unpacked)!r}); from specwire.generated import {COMPILED} as package;"
    code += "print(package.ACCELERATED, package.decode([bytes.fromhex('aaa106020001')]))"
    for pure, told in (("0", "True"), ("1", "False")):
        command, environment = [sys.executable, "-c", code], {**os.environ, "SPECWIRE_PURE": pure}
        run = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, cwd=tmp_path, timeout=120
        )
        assert run.stdout == f"{told} Ping(version=2, sequence=1)\n", run.stderr


@pytest.mark.slow
def test_without_a_compiler_packages_stay_in_python(built: Path, tmp_path: Path) -> None:
    """From the source archive: one line says what is missing, and the wheel works."""
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path)
    (source,) = (path for path in tmp_path.iterdir() if path.is_dir())
    command = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        str(tmp_path),
        str(source),
    ]
    run = subprocess.run(
        command, env={**os.environ, "CC": "false"}, capture_output=True, text=True, check=False, timeout=300
    )
    assert run.returncode == 0, run.stdout + run.stderr
    (line,) = own_lines(run.stdout + run.stderr)
    assert line.startswith(
        "specwire: codecs are not compiled and stay in Python: false or the headers of Python"
    )
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive_:
        assert not [name for name in archive_.namelist() if name.endswith((".so", ".pyd"))]
        archive_.extractall(tmp_path / "installed")
    run = run_installed(tmp_path / "installed", tmp_path, "show", "builds", "--json")
    assert set(json.loads(run.stdout.partition("\n")[2]).values()) == {"not compiled"}


def test_version_is_known() -> None:
    """The installation says its version, which comes from the latest tag; an unpacked archive has none."""
    assert is_checkout() <= (Version(specwire.__version__).release > (0, 0))


def test_every_emitter_is_an_entry_point() -> None:
    """The generator finds its targets as it finds those of a plug-in: by entry points, each of which loads."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    emitters = project["entry-points"]["specwire.emitters"]
    sources = (path for path in (ROOT / "generator/emit").rglob("*.py") if "\nEMITTER = " in path.read_text())
    names = {(path.parent if path.stem == "__init__" else path).stem for path in sources}
    assert emitters == {name: f"specwire.generator.emit.{name}:EMITTER" for name in names}
    for place in (*emitters.values(), *project["scripts"].values()):
        module, _, name = place.partition(":")
        assert hasattr(import_module(module), name), place


def test_constraints_pin_every_dependency() -> None:
    """Set-up installs tested releases only: each requirement, with extras resolved, has a line."""
    assert requirements() <= pinned()


def test_pinned_releases_are_for_the_oldest_python() -> None:
    """Set-up works with the first release of the oldest Python that the package is for, as a distribution has it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    oldest = project["requires-python"].removeprefix(">=") + ".0"
    required = {
        canonicalize_name(found.name): found.metadata["Requires-Python"] or "" for found in distributions()
    }
    wanted = {name: required[name] for name in pinned() & required.keys()}
    assert {name: text for name, text in wanted.items() if oldest not in SpecifierSet(text)} == {}


def pinned() -> set[NormalizedName]:
    """Return the names that constraints.txt has a release of."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return {canonicalize_name(line.partition("==")[0]) for line in lines if line and not line.startswith("#")}


def requirements() -> set[NormalizedName]:
    """Return the names that pyproject.toml requires, for any use."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = settings["project"]
    lines = [*project["dependencies"], *settings["build-system"]["requires"]]
    lines += [line for extra in project["optional-dependencies"].values() for line in extra]
    return {canonicalize_name(Requirement(line).name) for line in lines} - {canonicalize_name("specwire")}


def installed(path: Path) -> Path:
    """Return the place below ``specwire/`` from which a file is imported: links lead to the support library."""
    if is_support(path):
        return Path("generated") / path.relative_to(ROOT / "generator/support")
    return path.relative_to(ROOT)


def is_code(path: Path) -> bool:
    """Whether `path` is below one of the folders that the package links to."""
    return path.relative_to(ROOT).parts[0] in LINKED
