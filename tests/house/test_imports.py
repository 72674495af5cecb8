"""Dependencies point one way: specification → generator → generated → runtime.

The rules are read from the imports as they are written, those inside functions and under TYPE_CHECKING too:
whoever needs a library for its types depends on it.
"""

from __future__ import annotations

import ast
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.house.repository import CODE, ROOT, is_support, product_files, python_files

ONLY_IN = {
    "construct": ("constructs", "construct_numbers", "construct_runs", "construct_values"),
    "numpy": ("columns", "arrow"),
    "pyarrow": ("columns", "arrow"),
    "pyspark": ("schema", "spark"),
    "hypothesis": ("strategies",),
}
"""Which modules and folders of a generated package, or of what they share, may import a library that is not always there."""

SPARK_ORDER = (
    "errors",
    "protocols",
    "cluster",
    "session",
    "decoding",
    "reading",
    "answers",
    "pipeline",
    "report",
    "live",
)
"""The folders and modules of ``runtime/spark`` from the lowest to the highest: each imports only lower ones."""


@cache
def imports(path: Path) -> tuple[tuple[int, str], ...]:
    """Return the line and full name of everything that a source imports (`from a import b` is ``a``)."""
    found: list[tuple[int, str]] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.append((node.lineno, "." * node.level + (node.module or "")))
    return tuple(found)


def offences(paths: list[Path], allowed: object) -> list[str]:
    """Return the imports that `allowed(path, name)` refuses, as places to click on."""
    assert paths and callable(allowed)
    return [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in paths
        for line, name in imports(path)
        if not allowed(path, name)
    ]


def within(name: str, *packages: str) -> bool:
    """Whether `name` is one of `packages` or inside one."""
    return any(name == package or name.startswith(package + ".") for package in packages)


def is_standard(name: str) -> bool:
    """Whether `name` comes with Python."""
    return name.partition(".")[0] in sys.stdlib_module_names


PLAN = {ROOT / "generator" / "support" / name for name in ("lowering.py", "plan.py")}
"""Used under two names: by the generator and by generated packages."""


def test_no_import_is_relative() -> None:
    """One class has one name; generated packages may be anywhere, and the generator uses the plan, too."""

    def allowed(path: Path, name: str) -> bool:
        beside = name.startswith(".") and not name.startswith("..")
        return not name.startswith(".") or (beside and (is_package_module(path) or path in PLAN))

    assert offences([path for path in product_files() if path.suffix == ".py"], allowed) == []


def test_no_import_goes_around_the_package_name() -> None:
    """`import generator` works by accident where the repository is on the path; the package is `specwire`."""
    paths = [path for path in product_files() if path.suffix == ".py"]
    assert offences(paths, lambda _, name: not within(name, *CODE)) == []


def test_generator_imports_neither_generated_nor_runtime() -> None:
    """The generator can be run when nothing has been generated yet."""

    def allowed(path: Path, name: str) -> bool:
        return is_support(path) or not within(name, "specwire.generated", "specwire.runtime")

    assert offences(python_files("generator"), allowed) == []


def test_generated_code_needs_little() -> None:
    """A generated package: the standard library, msgspec, itself, what all share, one library in one module."""

    def allowed(path: Path, name: str) -> bool:
        if name.startswith("."):
            return is_package_module(path) or path in PLAN
        if within(name, "specwire.generated"):
            return not in_a_protocol(name)
        library = name.partition(".")[0]
        places = {path.stem, path.parent.name}
        return is_standard(name) or library == "msgspec" or bool(places & set(ONLY_IN.get(library, ())))

    paths = python_files("generated") + [path for path in python_files("generator") if is_support(path)]
    assert offences(paths, allowed) == []


def test_only_the_command_line_uses_the_generator() -> None:
    """The runtime works where the generator's libraries are not installed."""

    def allowed(path: Path, name: str) -> bool:
        return (ROOT / "runtime/cli") in path.parents or not within(name, "specwire.generator")

    assert offences(python_files("runtime"), allowed) == []


def test_only_the_transport_uses_zeromq() -> None:
    """Engines are values in, actions out; everything above the transport works without a socket."""

    def allowed(path: Path, name: str) -> bool:
        return (ROOT / "runtime/transport") in path.parents or not within(name, "zmq")

    assert offences(python_files(*CODE), allowed) == []


@pytest.mark.parametrize("library", ["pyspark", "pandas"])
def test_brokers_and_peers_do_without_spark(library: str) -> None:
    """Only Spark's own folder and the commands that start it know it is there."""

    def allowed(path: Path, name: str) -> bool:
        return path.relative_to(ROOT / "runtime").parts[0] in ("spark", "cli") or not within(name, library)

    assert offences(python_files("runtime"), allowed) == []


def test_imports_inside_of_spark_go_down() -> None:
    """What is lower can be read, tested and replaced without what is higher.

    The package itself only re-exports names, so nothing inside it imports from it.
    """
    spark = ROOT / "runtime/spark"

    def rank(name: str) -> int:
        assert name in SPARK_ORDER, f"{name} is not in SPARK_ORDER"
        return SPARK_ORDER.index(name)

    def allowed(path: Path, name: str) -> bool:
        if not within(name, "specwire.runtime.spark"):
            return True
        target = name.removeprefix("specwire.runtime.spark").strip(".").partition(".")[0]
        return bool(target) and rank(target) <= rank(path.relative_to(spark).parts[0].removesuffix(".py"))

    paths = [path for path in python_files("runtime") if spark in path.parents]
    assert offences([path for path in paths if path != spark / "__init__.py"], allowed) == []


def test_one_module_uses_private_state_of_pyspark() -> None:
    """A private name on another object is one that our own code defines; only the end of Java needs others."""
    spark = ROOT / "runtime/spark"
    trees = {
        path: ast.parse(path.read_text(encoding="utf-8"))
        for path in python_files("runtime")
        if spark in path.parents
    }
    of_named_tuples = {"_asdict", "_fields", "_make", "_replace"}
    ours = {name for tree in trees.values() for node in ast.walk(tree) for name in defined(node)}
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.attr}"
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and not node.attr.startswith("__")
        and node.attr not in ours | of_named_tuples
    ]
    assert found, "the end of the Java process needs some"
    assert {place.partition(":")[0] for place in found} == {"runtime/spark/session/java.py"}, found


def defined(node: ast.AST) -> tuple[str, ...]:
    """Return the names that a node defines: functions, classes, and attributes of `self`."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return (node.name,)
    of_self = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    return (node.attr,) if isinstance(node, ast.Attribute) and of_self else ()


def is_package_module(path: Path) -> bool:
    """Whether `path` is a module of one protocol's package."""
    return path.parent.parent == ROOT / "generated" and path.with_name("codec.py").is_file()


def in_a_protocol(name: str) -> bool:
    """Whether `name` is in the package of a protocol: not even in its own may a module name it in full."""
    package = name.removeprefix("specwire.generated").strip(".").partition(".")[0]
    return bool(package) and (ROOT / "generated" / package / "codec.py").is_file()
