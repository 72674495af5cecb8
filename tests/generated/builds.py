"""The builds of a package, both in one process: what every test of a codec is run against.

A package is loaded under its own name in the build that is active, which is the compiled one where it was
compiled; and a second time under another name with ``SPECWIRE_PURE=1``. Packages work under any name, so that is
the whole package again, `machine` and `stream` and `columns` included, and none of its classes are shared.

A test gets a build by the fixtures of ``conftest.py``, and so runs once for each:

    def test_nom(filemq: Any) -> None:                        # a fixture for each package
        assert filemq.decode(filemq.Nom(1).encode()) == filemq.Nom(1)

    @pytest.mark.parametrize("name", PACKAGES)
    def test_all(name: str, build: str) -> None:              # or the name of the build
        module = package(name, build)

Messages are made by the classes of that module, not by those of an import at the top of the test: what a test
imports from ``specwire.generated`` is the active build only. Where no compiled build is there, tests of it are
skipped with the reason; ``tests/house/test_builds.py`` fails where there is a compiler that could have made it.

`twins` gives the two classes of one package, for tests of what holds across builds.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from types import ModuleType
from unittest import mock

import pytest

from specwire import generated
from specwire.generated.builds import PURE, why_pure

BUILDS = ("pure", "native")
_HOME = "specwire_pure_builds"
"""The package above those that are loaded a second time."""


def package(name: str, build: str) -> ModuleType:
    """Return the package `name` in a build; skip the test where it is not there in that build."""
    active = import_module(f"specwire.generated.{name}")
    if active.ACCELERATED:
        return active if build == "native" else _pure(name)
    if build == "native":
        pytest.skip(f"no compiled build of {name}: {why_pure(active.__name__)}")
    return active


def twins(name: str, class_name: str) -> tuple[type, type]:
    """Return the pure and the native class of one package, which are each other's twins.

    Skips the test where there is no compiled build.
    """
    native = package(name, "native")
    return getattr(native.codec, class_name), getattr(native, class_name)


def _pure(name: str) -> ModuleType:
    if _HOME not in sys.modules:
        home = module_from_spec(ModuleSpec(_HOME, loader=None, is_package=True))
        home.__path__ = generated.__path__
        sys.modules[_HOME] = home
    with mock.patch.dict(os.environ, {PURE: "1"}):
        return import_module(f"{_HOME}.{name}")
