"""The registry of packages: where it looks, what it refuses, and that a stated name imports nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import specwire.generated
from specwire.runtime.package_search import PackageError
from specwire.runtime.packages import (
    REGISTRY,
    VARIABLE,
    Registry,
    add_packages,
    choose_package,
    find_package,
    has_part,
    load_package,
    load_part,
    package_editions,
    package_names,
)
from tests.runtime.own_packages import (
    EDITION,
    EDITION_2,
    LARGE,
    LARGE_QUOTE,
    QUOTE,
    QUOTE_2,
    write_package,
)

OURS = ("cmb1", "cmb1_json", "filemq", "flux", "libfilemq", "norfab", "norfab_ascii", "zmtp", "zre")


@pytest.fixture
def importable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give a folder on Python's path; what was imported from it is forgotten."""
    folder = tmp_path / "path"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] in {"wire", "app"}]:
        del sys.modules[name]


def test_ours_are_known_and_found_without_an_import() -> None:
    """By name, with their parts; shared modules such as `columns` are no packages."""
    assert package_names() == OURS
    assert find_package("flux").module == "specwire.generated.flux"
    assert has_part("flux", "stream") and not has_part("filemq", "stream") and not has_part("x", "codec")
    assert load_package("flux") is specwire.generated.flux  # type: ignore[attr-defined]


def test_a_package_of_a_folder_that_is_not_on_the_path(tmp_path: Path) -> None:
    """Named itself, or by the folder that holds it; it decodes, and is there only once."""
    place = write_package(tmp_path / "wire")
    assert add_packages(place.parent) == ("ticker",)
    assert add_packages(f"{place}/") == ("ticker",)
    assert load_package("ticker").decode(LARGE_QUOTE).price == LARGE
    assert load_part("ticker", "layout").LAYOUT.protocol == "ticker"
    assert package_names() == tuple(sorted({*OURS, "ticker"}))


def test_a_package_by_module_or_by_the_module_above(importable: Path) -> None:
    """Under its own name, which is the one that the user's program imports."""
    write_package(importable / "wire")
    assert add_packages("wire.ticker") == ("ticker",)
    assert add_packages("wire") == ("ticker",)
    package = load_package("ticker")
    assert package.__name__ == "wire.ticker"
    assert add_packages(package) == ("ticker",)


def test_the_environment_names_modules_and_folders(
    importable: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Separated as PATH is; a change of it is noticed."""
    write_package(importable / "wire")
    other = write_package(tmp_path / "more", "other")
    monkeypatch.setenv(VARIABLE, f"wire{os.pathsep} {other}{os.pathsep}")
    assert {"ticker", "other"} < set(package_names())
    assert load_package("other").decode(LARGE_QUOTE).price == LARGE
    monkeypatch.setenv(VARIABLE, "")
    assert package_names() == OURS


def test_entry_points_of_installed_distributions(importable: Path) -> None:
    """As pip would have written them."""
    write_package(importable / "wire")
    notes = importable / "wire_protocols-1.0.dist-info"
    notes.mkdir()
    (notes / "METADATA").write_text("Metadata-Version: 2.1\nName: wire-protocols\nVersion: 1.0\n")
    (notes / "entry_points.txt").write_text("[specwire.packages]\nall = wire\n")
    assert find_package("ticker").origin == "the entry point all of wire-protocols"
    assert load_package("ticker").__name__ == "wire.ticker"
    (notes / "entry_points.txt").write_text("[specwire.packages]\nall = wired\n")
    assert load_package("flux").__name__ == "specwire.generated.flux"


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("nosuch.module", "there is no package nosuch.module on Python's path"),
        ("json", "json holds no generated package"),
        ("os.path", "there is no package os.path on Python's path"),
        ("./nosuch", "there is no folder "),
        ("../", "holds no generated package"),
        ("wire.", "'wire.' is not the name of a module"),
        ("a b", "'a b' is not the name of a module"),
        ("\0", "is not the name of a module"),
        ("", "'' is not the name of a module"),
    ],
)
def test_sources_that_hold_no_package(
    source: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One sentence each, which names who named it."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(PackageError) as caught:
        add_packages(source)
    assert str(caught.value).startswith("add_packages: ") and sentence in str(caught.value)


def test_a_broken_parent_is_told(importable: Path) -> None:
    """The module above a package is the user's, and may fail."""
    (importable / "app.py").write_text("")
    with pytest.raises(PackageError, match=r"there is no package app\.ticker"):
        add_packages("app.ticker")
    write_package(importable / "wire")
    (importable / "wire" / "__init__.py").write_text("raise ImportError('no flask')\n")
    with pytest.raises(PackageError, match=r"the module wire\.ticker cannot be imported: no flask"):
        add_packages("wire.ticker")


def test_none_of_ours_is_shadowed(tmp_path: Path) -> None:
    """Another package of its edition is an error, a copy is ours; two of the user's are compared, too."""
    with pytest.raises(PackageError) as caught:
        add_packages(write_package(tmp_path / "wire", "flux", edition="Flux v1"))
    assert str(caught.value).endswith(
        "differs from the one that specwire brings, and both are of edition 'Flux v1': "
        "give the protocol another name or edition"
    )
    asked, place = Registry(), tmp_path / "wire"
    asked.add([place], "--packages", ["flux"])
    assert asked.find("flux").place == f"{place}/flux" and asked.names() == OURS
    assert add_packages(Path(specwire.generated.__path__[0], "zre")) == ("zre",)
    assert load_package("zre").__name__ == "specwire.generated.zre"
    add_packages(write_package(tmp_path / "one"))
    assert add_packages(write_package(tmp_path / "two")) == ("ticker",)
    different = write_package(tmp_path / "three", more="\n[types.price]\ndefault = 5\n")
    with pytest.raises(PackageError, match=f"differs from the one in {tmp_path}/one/ticker"):
        add_packages(different)


def test_editions_of_a_protocol(importable: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first is the default; a stated edition chooses; each is a module of its own."""
    first, second = write_package(tmp_path / "one"), write_package(tmp_path / "two", edition=EDITION_2)
    monkeypatch.setenv(VARIABLE, str(second))
    assert package_editions("ticker") == (EDITION_2,)
    assert choose_package("ticker", "any other") == "ticker"
    add_packages(first)
    assert package_editions("ticker") == (EDITION, EDITION_2)
    assert package_names() == tuple(sorted({*OURS, "ticker"}))
    assert (find_package("ticker").place, find_package("ticker@Ticker").place) == (str(first), str(first))
    assert find_package("ticker@Ticker 2").place == str(second)
    assert not hasattr(load_package("ticker").decode(QUOTE), "volume")
    assert load_package("ticker@Ticker 2").decode(QUOTE_2).volume == 500
    assert sorted(REGISTRY.others()) == ["ticker", "ticker@Ticker 2"]
    stated = ("", EDITION, EDITION_2, "Ticker 3")
    assert [choose_package("ticker", edition) for edition in stated] == [
        "ticker", "ticker", "ticker@Ticker 2", None,
    ]  # fmt: skip
    assert choose_package("quotes", EDITION) is None
    assert has_part("ticker@Ticker 2", "columns") and not has_part("ticker@Ticker 3", "columns")
    with pytest.raises(PackageError) as caught:
        load_package("ticker@Ticker 3")
    assert str(caught.value).startswith(
        "there is no edition 'Ticker 3' of ticker; the known ones are Ticker, Ticker 2; name its package"
    )


def test_an_edition_of_one_of_ours(tmp_path: Path) -> None:
    """Ours is the default, unless a command names the protocol."""
    place = write_package(tmp_path / "wire", "flux", edition="Flux v9")
    add_packages(place)
    assert package_editions("flux") == ("Flux v1", "Flux v9")
    assert load_package("flux@Flux v9").decode(QUOTE).price == 1250
    registry = Registry()
    registry.add([place], "--packages", ["flux"])
    assert [package.edition for package in registry.editions("flux")] == ["Flux v9", "Flux v1"]


def test_a_missing_part_names_the_target(tmp_path: Path) -> None:
    """A package that was generated with few targets."""
    assert add_packages(write_package(tmp_path / "wire", targets=("schema",))) == ("ticker",)
    assert load_part("ticker", "schema").TABLES
    assert not has_part("ticker", "columns")
    with pytest.raises(PackageError, match=r"no columns\.py: .*specwire generate ticker --target columns`"):
        load_part("ticker", "columns")
    with pytest.raises(PackageError, match="--target package`"):
        load_package("ticker")


@pytest.mark.parametrize(
    "name",
    ["os.path", "wire.ticker", "wire", "../flux", "flux/../zre", "/etc", "a\0b", "", ".", "columns", "__init__", "flux "],
)  # fmt: skip
def test_a_stated_name_imports_nothing(name: str, importable: Path) -> None:
    """Only names that a source has are imported, whatever is on the path."""
    write_package(importable / "wire")
    (importable / "wire" / "__init__.py").write_text("raise SystemExit('imported')\n")
    before = set(sys.modules)
    for look in (find_package, load_package, lambda name: load_part(name, "codec")):
        with pytest.raises(PackageError, match="there is no protocol "):
            look(name)
    assert not has_part(name, "codec")
    assert set(sys.modules) == before


def test_an_unknown_name_says_how_to_name_a_package() -> None:
    """Or what was probably meant."""
    with pytest.raises(PackageError) as far:
        find_package("quotes")
    assert str(far.value).endswith(
        "zre; name its package with --packages MODULE, --grammars DIR or SPECWIRE_PACKAGES"
    )
    with pytest.raises(PackageError, match="did you mean 'flux'"):
        find_package("flx")
