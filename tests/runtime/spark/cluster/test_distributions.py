"""Which installed files go into the archive: found in the metadata of a small site-packages made by hand."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path

import pytest

from specwire.runtime.spark.cluster import building
from specwire.runtime.spark.cluster.building import find_distributions, list_files
from specwire.runtime.spark.errors import InputError


def install(site: Path, name: str, requires: tuple[str, ...] = (), files: tuple[str, ...] = ()) -> None:
    """Put a distribution into `site` as pip does: its files, metadata, and a record of both."""
    info = f"{name.replace('-', '_')}-1.0.dist-info"
    (site / info).mkdir()
    lines = [f"Name: {name}", "Version: 1.0", *(f"Requires-Dist: {line}" for line in requires)]
    (site / info / "METADATA").write_text("\n".join(["Metadata-Version: 2.1", *lines]) + "\n")
    (site / info / "direct_url.json").write_text("{}")
    for file in files:
        (site / file).parent.mkdir(parents=True, exist_ok=True)
        (site / file).touch()
    recorded = [*files, f"{info}/METADATA", f"{info}/direct_url.json", f"{info}/RECORD"]
    (site / info / "RECORD").write_text("".join(f"{file},,\n" for file in recorded))


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty site-packages that is the only one."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    monkeypatch.setattr(sys, "path", [str(folder)])
    monkeypatch.setattr(building, "NEEDED", ())
    yield folder


def test_requirements_are_followed_with_their_extras(site: Path) -> None:
    """Ours by `spark`, theirs by the extras they are required with; not what Spark itself brings."""
    install(site, "specwire", ("a>=1", 'b[x,y]>=2; extra == "spark"', 'never; extra == "docs"', "pyspark"))
    install(site, "a", ("specwire",))
    install(site, "b", ('C_c (>=1) ; extra == "x"', "d ; extra == 'z'", 'absent; sys_platform == "win32"'))
    for name in ("c-c", "d", "never", "pyspark"):
        install(site, name)
    assert list(find_distributions()) == ["a", "b", "c-c", "specwire"]


def test_what_is_necessary_must_be_installed(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An archive without it would fail on the first row."""
    monkeypatch.setattr(building, "NEEDED", ("numpy",))
    install(site, "specwire")
    with pytest.raises(InputError, match=r"not installed: numpy; pip install 'specwire\[spark\]'"):
        find_distributions()


def test_files_are_those_that_a_worker_can_use(site: Path) -> None:
    """No tests, headers, programs, compiled Python, paths of editable installations or notes of pip."""
    used = ("a/__init__.py", "a/_native.so", "a.libs/lib.so.1")
    unused = ("a/tests/test_a.py", "a/include/a.h", "../bin/a", "a/__pycache__/a.pyc", "__editable__.a.pth")
    install(site, "a", files=used + unused)
    files = dict(list_files("a", distribution("a")))
    assert set(files) == {*used, "a-1.0.dist-info/METADATA"}
    assert files["a/_native.so"] == site / "a/_native.so"


def test_an_unrecorded_installation_is_refused(site: Path) -> None:
    """Debian's packages have no list of their files."""
    install(site, "a")
    (site / "a-1.0.dist-info" / "RECORD").unlink()
    with pytest.raises(InputError, match="a was not installed by pip"):
        list(list_files("a", distribution("a")))


def test_our_own_files_are_found_in_an_editable_installation() -> None:
    """Through the links, with generated code, grammars and what was compiled."""
    files = dict(list_files("specwire", distribution("specwire")))
    assert {
        "specwire/__init__.py",
        "specwire/generated/columns/reader.py",
        "specwire/generated/errors.py",
        "specwire/generated/flux/columns.py",
        "specwire/runtime/spark/decoding/decode.py",
        "specwire/generator/ir/names.py",
    } <= files.keys()
    here = Path(building.__file__).parents[3]
    compiled = {f"specwire/{path.relative_to(here)}" for path in (here / "generated").glob("*/*.so")}
    assert compiled <= files.keys()
    assert not [name for name in files if "__pycache__" in name or name.endswith(".c")]
