"""The packages of this checkout are in C where there is a compiler: a build that was lost is a fault."""

from __future__ import annotations

import os
from importlib import import_module

import pytest

from specwire.generated.builds import PURE, why_pure
from specwire.generated.flux.stream import FRAMING
from specwire.runtime.transport import messages
from tests.house.repository import ROOT, has_compiler

PACKAGES = sorted(path.parent.name for path in ROOT.glob("generated/*/_native.pyx"))


@pytest.mark.skipif(os.environ.get(PURE) == "1", reason=f"{PURE}=1 asks for the builds in Python")
@pytest.mark.skipif(not has_compiler(), reason="no C compiler, or no headers of Python")
@pytest.mark.parametrize("name", PACKAGES)
def test_package_is_accelerated(name: str) -> None:
    """`make setup` compiles; by hand ``python setup.py build_ext --inplace`` does."""
    package = import_module(f"specwire.generated.{name}")
    assert package.ACCELERATED, f"{name}: {why_pure(package.__name__)}; run make setup"


@pytest.mark.skipif(os.environ.get(PURE) == "1", reason=f"{PURE}=1 asks for the builds in Python")
@pytest.mark.skipif(not has_compiler(), reason="no C compiler, or no headers of Python")
def test_streams_are_accelerated() -> None:
    """The compiled module that packages share for their streams is of the source that is there."""
    assert FRAMING.quick_cut is not None, "run make setup"


@pytest.mark.skipif(os.environ.get(PURE) == "1", reason=f"{PURE}=1 asks for the builds in Python")
@pytest.mark.skipif(not has_compiler(), reason="no C compiler, or no headers of Python")
def test_sockets_are_accelerated() -> None:
    """The compiled module is of the source that is there, and finds the libzmq of pyzmq."""
    assert not why_pure(messages.PACKAGE), f"{why_pure(messages.PACKAGE)}; run make setup"


def test_every_package_can_be_compiled() -> None:
    """The generator writes the source in Cython of each."""
    assert sorted(path.parent.name for path in ROOT.glob("generated/*/codec.py")) == PACKAGES
