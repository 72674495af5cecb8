"""A project of somebody else: a specification imported, a package generated into it, nothing edited.

The two commands of the first test are what a user types. Everything after them holds for a package that
stands under any name: its modules find each other beside them, and what all packages share in specwire.
"""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import specwire.generated
from specwire.generated import zre as specwires
from specwire.generated.errors import DecodeError
from specwire.generated.messages import Message
from specwire.runtime.cli.main import main
from tests.generated.vectors import Vector, recorded
from tests.generator.documents import DOCUMENTS
from tests.house.repository import has_compiler

VECTORS = recorded("zre")
MODULES = {"__init__", "codec", "columns", "constructs", "layout", "machine", "schema"}


def run_command(*arguments: str) -> None:
    """Run a command that succeeds."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert not ended.value.code, arguments


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project without a line of its own, after the two commands."""
    folder = tmp_path_factory.mktemp("project")
    shutil.copyfile(DOCUMENTS / "zre.md", folder / "rfc36.md")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        run_command("import", "rfc36.md", "--protocol", "zre", "--grammars", "g")
        run_command("generate", "zre", "--grammars", "g", "--out", "src/myapp/wire")
    return folder


@pytest.fixture(scope="module")
def zre(project: Path) -> Iterator[ModuleType]:
    """``from myapp.wire import zre``."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(project / "src")
        yield import_module("myapp.wire.zre")
    for name in [name for name in sys.modules if name.partition(".")[0] == "myapp"]:
        del sys.modules[name]


def test_only_the_package_is_written(project: Path) -> None:
    """No module that all packages share, and no ``__init__.py`` above the package: that folder is the user's."""
    written = {path for path in project.rglob("*.py")}
    own = {path.name for path in Path(specwire.generated.__path__[0], "zre").glob("*.py")}
    assert written == {project / "src/myapp/wire/zre" / name for name in own}
    assert {path.stem for path in written} >= MODULES


def test_nothing_names_where_it_stands(project: Path) -> None:
    for path in (project / "src/myapp/wire/zre").iterdir():
        text = path.read_text(encoding="utf-8")
        # To Java it is a name of its own, of the decoder that Spark loads, wherever the Python package stands.
        assert "specwire.generated.zre" not in text.replace("package specwire.generated.zre;", "")
        assert "myapp" not in text and str(project) not in text
        assert "run `specwire generate zre`" in text and "make " not in text


@pytest.mark.parametrize("vector", VECTORS, ids=str)
def test_messages_of_another_implementation(zre: ModuleType, vector: Vector) -> None:
    message = zre.decode(vector.frames)
    assert type(message).__name__ == vector.class_name
    assert message.to_dict() == vector.fields
    assert message.encode() == list(vector.frames)
    assert type(message).__module__ == "myapp.wire.zre"
    assert pickle.loads(pickle.dumps(message)) == message


def test_what_is_shared_is_specwires(zre: ModuleType) -> None:
    assert zre.DecodeError is DecodeError
    assert issubclass(zre.Ping, Message)
    with pytest.raises(DecodeError, match="hello"):
        zre.decode([VECTORS[0].frames[0][:5]])


def test_two_copies_live_in_one_process(zre: ModuleType) -> None:
    """The user's package and specwire's own have nothing in common but the base."""
    frames = [frame for vector in VECTORS if vector.class_name == "Ping" for frame in vector.frames]
    mine, other = zre.decode(frames), specwires.decode(frames)
    assert type(mine) is zre.Ping and type(other) is specwires.Ping and zre.Ping is not specwires.Ping
    assert mine != other and mine.to_dict() == other.to_dict()
    assert (
        zre.constructs is not specwires.constructs and zre.constructs.__name__ == "myapp.wire.zre.constructs"
    )
    assert pickle.loads(pickle.dumps((mine, other))) == (mine, other)


@pytest.mark.parametrize("name", ["columns", "constructs", "machine"])
def test_late_modules_stand_beside_it(zre: ModuleType, name: str) -> None:
    module = getattr(zre, name)
    assert module is import_module(f"myapp.wire.zre.{name}")


def test_constructs_and_columns_read_the_messages(zre: ModuleType) -> None:
    import pyarrow as pa

    for vector in VECTORS:
        name, values = zre.constructs.parse(list(vector.frames))
        assert (name, zre.constructs.build(name, values)) == (vector.class_name, list(vector.frames))
    rows = zre.columns.decode(pa.array([list(vector.frames) for vector in VECTORS]))
    assert rows.column("_message").to_pylist() == [vector.class_name for vector in VECTORS]


@pytest.mark.slow
def test_schema_is_sparks(zre: ModuleType) -> None:
    """Spark's types are imported; Spark itself is not started."""
    assert set(zre.schema.SCHEMAS) == set(zre.MESSAGES)


def check(folder: Path, *arguments: str) -> tuple[int, str]:
    """Run a checker as a module; return its status and what it prints."""
    command = [sys.executable, "-m", *arguments]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    return run.returncode, run.stdout + run.stderr


PROGRAM = """\
import pyarrow as pa

from myapp.wire import zre


def sequence_of(frames: list[bytes]) -> int:
    match zre.decode(frames):
        case zre.Ping(sequence=sequence) | zre.PingOk(sequence=sequence):
            return sequence
        case zre.Whisper() as whisper:
            return len(whisper.content)
    return 0


schema: pa.Schema = zre.columns.SCHEMA
wrong: str = zre.Ping(version=2, sequence=1).sequence
"""


def test_the_users_linter_passes(project: Path) -> None:
    """ruff with the rules that a project has by default."""
    status, told = check(project, "ruff", "check", "--isolated", "--no-cache", "src")
    assert status == 0, told


@pytest.mark.slow
def test_the_users_type_checker_passes(project: Path, tmp_path: Path) -> None:
    """mypy in strict mode, without a setting."""
    shutil.copytree(project / "src", tmp_path / "src")
    (tmp_path / "src" / "myapp" / "program.py").write_text(PROGRAM, encoding="utf-8")
    strict = ("mypy", "--strict", "--no-incremental", "--config-file", "", "-p", "myapp")
    status, told = check(tmp_path / "src", *strict)
    # Types reach the program through the package: its one mistake is found.
    mistake = 'Incompatible types in assignment (expression has type "int", variable has type "str")'
    found = [line for line in told.splitlines() if ": error: " in line]
    assert status == 1 and len(found) == 1, told
    assert found[0].startswith("myapp/program.py:16: error: ") and mistake in found[0]


@pytest.mark.slow
def test_a_moved_package_works_as_it_is(project: Path, tmp_path: Path) -> None:
    """Under another name, and as a top-level package: nothing in it knows where it stood."""
    for place, name in (("a/b/proto", "a.b.proto"), ("alone", "alone")):
        shutil.copytree(project / "src/myapp/wire/zre", tmp_path / place)
        code = f"import {name} as p; p.columns, p.machine, p.constructs; print(p.codec.decode is p.decode, p.Ping)"
        run = subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert run.stdout == f"True <class '{name}.Ping'>\n", run.stderr


@pytest.mark.slow
@pytest.mark.skipif(not has_compiler(), reason="no C compiler, or no headers of Python")
def test_the_package_can_be_compiled_where_it_stands(project: Path, tmp_path: Path) -> None:
    """One command of Cython; what it leaves in the folder is no drift, and the messages keep their name."""
    shutil.copytree(project, tmp_path, dirs_exist_ok=True)
    source = tmp_path / "src/myapp/wire/zre/_native.pyx"
    command = [sys.executable, "-m", "Cython.Build.Cythonize", "--inplace", str(source)]
    brief = os.environ | {"CFLAGS": "-O0"}  # nobody measures this build
    run = subprocess.run(
        command, cwd=tmp_path, env=brief, capture_output=True, text=True, check=False, timeout=300
    )
    assert run.returncode == 0, run.stdout + run.stderr
    code = (
        "import pickle; from myapp.wire import zre; from specwire.generated.builds import why_pure;"
        "message = zre.Ping(version=2, sequence=1); assert pickle.loads(pickle.dumps(message)) == message;"
        "print(zre.ACCELERATED, why_pure('myapp.wire.zre'), zre.Ping, message.encode()[0].hex())"
    )
    for pure, told in (("0", "True "), ("1", "False SPECWIRE_PURE=1 is set")):
        run = subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path / "src",
            env={**os.environ, "SPECWIRE_PURE": pure},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert run.stdout == f"{told} <class 'myapp.wire.zre.Ping'> aaa106020001\n", run.stderr
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        run_command("generate", "zre", "--grammars", "g", "--out", "src/myapp/wire", "--check")
