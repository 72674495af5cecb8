"""Fixtures that hand a test each build of a package; see ``builds.py``."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.generated.builds import BUILDS, package


@pytest.fixture(scope="session", params=BUILDS)
def build(request: pytest.FixtureRequest) -> str:
    """The name of a build."""
    name: str = request.param
    return name


@pytest.fixture(scope="session")
def cmb1(build: str) -> ModuleType:
    """Package cmb1."""
    return package("cmb1", build)


@pytest.fixture(scope="session")
def cmb1_json(build: str) -> ModuleType:
    """Package cmb1_json."""
    return package("cmb1_json", build)


@pytest.fixture(scope="session")
def filemq(build: str) -> ModuleType:
    """Package filemq."""
    return package("filemq", build)


@pytest.fixture(scope="session")
def flux(build: str) -> ModuleType:
    """Package flux."""
    return package("flux", build)


@pytest.fixture(scope="session")
def libfilemq(build: str) -> ModuleType:
    """Package libfilemq."""
    return package("libfilemq", build)


@pytest.fixture(scope="session")
def norfab(build: str) -> ModuleType:
    """Package norfab."""
    return package("norfab", build)


@pytest.fixture(scope="session")
def norfab_ascii(build: str) -> ModuleType:
    """Package norfab_ascii."""
    return package("norfab_ascii", build)


@pytest.fixture(scope="session")
def zmtp(build: str) -> ModuleType:
    """Package zmtp."""
    return package("zmtp", build)


@pytest.fixture(scope="session")
def zre(build: str) -> ModuleType:
    """Package zre."""
    return package("zre", build)
