"""Which build of a package a program gets: the one in C where it is there and fits, else the one in Python.

A package decides when it is imported. The compiled module says which source it was made of; one that is older
than its package, because this was generated anew and not compiled since, is never used. Nor is one that cannot
be imported, for whatever reason: a package works without. ``SPECWIRE_PURE=1`` asks for the build in Python.
"""

from __future__ import annotations

import os
from importlib import import_module
from types import ModuleType

PURE = "SPECWIRE_PURE"
"""The environment variable that is 1 where the build in Python is wanted."""

_STUMBLED = (AttributeError, ImportError, LookupError, NameError, TypeError, ValueError)
"""What a module can run into that was compiled of other sources than those that are there now."""

_reasons: dict[str, str] = {}
"""For each package that was imported, why it is not accelerated; an empty text where it is."""


def is_native(package: str, digest: str) -> bool:
    """Return whether the compiled module of `package` can be used, which is then imported.

    Args:
        package: the full name under which the package is being imported.
        digest: what the package knows its compiled module by, whose ``BUILD`` it must be.
    """
    _reasons[package] = _reason(f"{package}._native", digest)
    return not _reasons[package]


def find_native(module: str, build: str) -> ModuleType | None:
    """Return the compiled `module`, which several packages share, where it can be used: its ``BUILD`` must be `build`."""
    if os.environ.get(PURE) == "1":
        return None
    try:
        native = import_module(module)
        return native if build == native.BUILD else None
    except _STUMBLED:
        return None


def why_pure(package: str) -> str:
    """Return why a package that was imported is not accelerated, in words; an empty text where it is.

    Raises:
        KeyError: nothing of that name was imported that has builds.
    """
    return _reasons[package]


def _reason(module: str, digest: str) -> str:
    if os.environ.get(PURE) == "1":
        return f"{PURE}=1 is set"
    try:
        native = import_module(module)
    except ModuleNotFoundError as error:
        return "not compiled" if error.name == module else f"its compiled module cannot be imported: {error}"
    except _STUMBLED as error:
        return f"its compiled module cannot be imported: {error}"
    return "" if digest == native.BUILD else "compiled before the package was generated anew"
