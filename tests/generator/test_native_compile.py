"""Layouts that together have a value of every kind: the compiled codec does what the pure one does."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specwire.generated.builds import PURE
from specwire.generated.errors import CodecError
from specwire.generator import ir
from specwire.generator.packages import package_files
from tests.examples import examples
from tests.generated import strategies
from tests.generator.layouts import field, message, protocol
from tests.house.repository import ROOT, has_compiler

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.environ.get(PURE) == "1", reason=f"{PURE}=1 asks for the builds in Python"),
    pytest.mark.skipif(not has_compiler(), reason="no C compiler, or no headers of Python"),
]
NAME = "every_kind"
SHORT, LONG, REST = ir.Length("prefix", 1), ir.Length("prefix", 8), ir.Length("rest")
RECORD = ir.RecordType(
    "inner",
    "Inner",
    (
        field("length", ir.SizeType((ir.SizeForm("f0", 1), ir.SizeForm("f1", 8)))),
        field("number", ir.IntegerType(3)),
        field("again", ir.SizeType((ir.SizeForm("", 1), ir.SizeForm("ff", 8)))),
        field("left_out", ir.IntegerType(2), optional=True),
        field("behind", ir.TextType(REST), optional=True),
    ),
)
UNION = ir.UnionType(
    "choice",
    (
        ir.RecordType(
            "one", "One", (field("head", ir.ConstantType("01")), field("text", ir.TextType(SHORT)))
        ),
        ir.RecordType(
            "two", "Two", (field("head", ir.ConstantType("0200")), field("filler", ir.PaddingType(2, "ff")))
        ),
    ),
    ("01", "0200"),
)
EVERY: tuple[ir.Type, ...] = (
    ir.IntegerType(5), ir.IntegerType(1, enum="kind"), ir.IntegerType(8, values=(0, 2**64 - 1)), ir.PaddingType(3),
    ir.ConstantType("0a0b"), ir.TextType(LONG), ir.TextType(ir.Length("fixed", 4), padding="20"),
    ir.TextType(ir.Length("fixed", 2)), ir.OctetsType(SHORT, 1, 3), ir.OctetsType(ir.Length("fixed", 2)),
    ir.TextType(ir.Length("until", until="0d0a")), ir.ConstantType("0d0a"), ir.ListType(2, ir.IntegerType(3), 1),
    ir.ListType(1, ir.ListType(1, ir.TextType(SHORT))), ir.PairsType(1, ir.TextType(SHORT), split="first", rule="pair"),
    ir.PairsType(2, ir.TextType(SHORT), split="last"), ir.PairsType(1, ir.TextType(SHORT), ir.OctetsType(LONG), minimum=1),
    ir.ListType(1, RECORD), UNION, ir.SizeType((ir.SizeForm("", 2),)), ir.OctetsType(REST, 0, 5),
)  # fmt: skip
WHOLE: tuple[ir.Type, ...] = (
    ir.KeywordType(("GET", "PUT")), ir.JsonType(), ir.TextType(REST, terminated=True), ir.OctetsType(REST, 1), RECORD,
    ir.ListType(0, ir.IntegerType(1, values=(1, 2))),
)  # fmt: skip


def layout() -> ir.Protocol:
    """One message with every value in its frame, one with a frame for each, some of which can be absent."""
    names = ("include", "cdef", "long", "struct", "double", "kept", "made", "values", "run", "count", "out")
    fields = [
        field(name, type)
        for name, type in zip([*names, *(f"field_{n}" for n in range(20))], EVERY, strict=False)
    ]
    head = field("head", ir.ConstantType("aaa101"))
    other = field("head", ir.ConstantType("aaa102"))
    frames: list[ir.Part] = [ir.Frame("head", (other,))]
    frames += [ir.Frame(f"whole_{n}", (field(f"whole_{n}", type),)) for n, type in enumerate(WHOLE)]
    maybe = [
        ir.Frame(name, (field(name, ir.TextType(REST), nullable=True),), ir.Counted())
        for name in ("first", "second")
    ]
    rest = ir.Rest("rest", field("rest", ir.OctetsType(REST, 0, 4)))
    third = field("head", ir.ConstantType("aaa103"))
    return protocol(
        (
            message(1, (ir.Frame("all", (head, *fields)),), "aaa101"),
            message(2, (*frames, *maybe), "aaa102"),
            message(3, (ir.Frame("head", (third,)), rest), "aaa103"),
        ),
        ir.Selector(0, 3),
    )


@pytest.fixture(scope="module")
def package() -> Iterator[ModuleType]:
    """The package of that layout, compiled."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        for path, text in package_files([layout()]).items():
            file = Path(folder, NAME, Path(path).name)
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
        compiled(Path(folder, NAME, "_native.pyx"))
        patch.syspath_prepend(folder)
        yield importlib.import_module(NAME)
        for loaded in [one for one in sys.modules if one.split(".")[0] == NAME]:
            del sys.modules[loaded]


def compiled(source: Path, package: str = NAME) -> None:
    """Compile a module in Cython beside its source, with no care for speed."""
    module, include = f"{package}._native", sysconfig.get_path("include")
    made = source.with_name("_native" + sysconfig.get_config_var("EXT_SUFFIX"))
    cython = [
        sys.executable,
        "-m",
        "cython",
        "-3",
        "-I",
        str(ROOT / "src"),
        "--module-name",
        module,
        str(source),
    ]
    compiler = os.environ.get("CC") or sysconfig.get_config_var("CC").split()[0]
    flags = ["-shared", "-fPIC", "-O0", "-w", f"-I{include}"]
    for command in (cython, [compiler, *flags, str(source.with_suffix(".c")), "-o", str(made)]):
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0 and "warning" not in done.stderr, done.stderr


MANY = settings(max_examples=examples(80), deadline=None, suppress_health_check=list(HealthCheck))


def told(work: Any, *arguments: Any) -> Any:
    """What comes of it, or all that the error says."""
    try:
        return work(*arguments)
    except CodecError as error:
        return type(error), error.attributes()


@MANY
@given(data=st.data())
def test_frames_are_read_alike(package: ModuleType, data: st.DataObject) -> None:
    assert package.ACCELERATED
    frames = data.draw(strategies.frames(package) | strategies.mutated_frames(package))
    pure, native = told(package.codec.decode, frames), told(package.decode, frames)
    assert native == pure
    if not isinstance(pure, tuple):
        assert type(native) is package.MESSAGES[type(pure).__name__]
        assert repr(native) == repr(pure) and native.replace() == pure
        assert told(native.encode) == told(pure.encode) == told(native.replace().encode)


@MANY
@given(data=st.data())
def test_messages_are_written_or_refused_alike(package: ModuleType, data: st.DataObject) -> None:
    native = data.draw(strategies.anything(package))
    assert told(native.encode) == told(twin(package, native).encode)


def twin(package: ModuleType, value: Any) -> Any:
    """A value with the classes of the pure codec."""
    if isinstance(value, tuple):
        return tuple(twin(package, item) for item in value)
    pure = getattr(package.codec, type(value).__name__, None)
    if pure is None or not hasattr(pure, "NAME"):
        return value
    return pure(**{name: twin(package, getattr(value, name)) for name in pure.__match_args__})
