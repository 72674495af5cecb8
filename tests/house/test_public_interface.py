"""What docs/reference/api.md promises is there: in every generated package, and in every module that it lists."""

from __future__ import annotations

import re
from importlib import import_module

import pytest

import api_table
from specwire.generated import errors, flux
from specwire.runtime.packages import package_names
from tests.house.repository import ROOT

PAGE = ROOT / "docs/reference/api.md"
OF_SOME = {"StreamDecoder", "frame", "NODEID_ANY", "Flags", "Request"}
"""What a package has where its protocol has such a thing."""

SILENT = {"zmtp"}
"""Protocols whose documents have no dialog."""


def promised() -> list[str]:
    """Return the names that the page writes with `flux` in front."""
    return re.findall(r"`flux\.([\w.]+)`", PAGE.read_text(encoding="utf-8"))


def has(package: object, path: str) -> bool:
    """Whether a package has the name at the end of a dotted path."""
    thing = package
    for name in path.split("."):
        if not hasattr(thing, name):
            return False
        thing = getattr(thing, name)
    return True


def test_flux_has_all_of_it() -> None:
    """The page's own example."""
    assert len(promised()) > 20
    assert [path for path in promised() if not has(flux, path)] == []


@pytest.mark.parametrize("protocol", package_names())
def test_every_package_has_it(protocol: str) -> None:
    """But for what depends on the protocol."""
    package = import_module(f"specwire.generated.{protocol}")
    left_out = OF_SOME | (
        {path for path in promised() if "machine." in path} if protocol in SILENT else set()
    )
    assert [path for path in promised() if path not in left_out and not has(package, path)] == []


def test_errors_have_the_attributes() -> None:
    """In the words of the page."""
    (row,) = re.findall(r"^\| `flux.DecodeError`.*$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    with pytest.raises(flux.DecodeError) as found:
        flux.decode([b""])
    for name in re.findall(r"`(\w+)`", row):
        assert hasattr(found.value, name), name
    assert {flux.DecodeError, flux.EncodeError} <= set(errors.CodecError.__subclasses__())


def test_page_lists_the_names(capsys: pytest.CaptureFixture[str]) -> None:
    """The table is what scripts/api_table.py writes: run it after a change."""
    assert api_table.main(["--check", str(PAGE)]) == 0, capsys.readouterr().out


def test_every_public_name_is_explained() -> None:
    """A row for each, with words."""
    assert re.findall(r"^\| `\w+` \|  \|$", api_table.write_table(), re.MULTILINE) == []


def test_modules_that_are_public() -> None:
    """Those that a program starts with are among them."""
    wanted = {
        f"specwire.runtime.{name}"
        for name in ("capture", "filemq", "flux", "norfab.client", "norfab.worker", "spark")
    }
    assert wanted <= set(api_table.public_modules())
