# Written by specwire from generator/support/builds.py. Do not edit; change that file and run `make generate`.
"""Choice between the two builds of a package: C where it is available and current, else Python.

The choice is made when the package is imported. The compiled module records the digest of its
source. A module that is older than its package, because the package was regenerated and not
recompiled, is not used. Neither is one that fails to import, for whatever reason: the Python build
always works. Set ``SPECWIRE_PURE=1`` to force the Python build.
"""

from __future__ import annotations

import os
from importlib import import_module
from types import ModuleType

PURE = "SPECWIRE_PURE"
"""Environment variable that forces the Python build when it is 1."""

_IMPORT_ERRORS = (AttributeError, ImportError, LookupError, NameError, TypeError, ValueError)
"""Errors that importing a module can raise when it was compiled from other sources."""

_reasons: dict[str, str] = {}
"""For each imported package, why it is not accelerated; empty if it is."""


def is_native(package: str, digest: str) -> bool:
    """Return whether the compiled module of `package` can be used; import it if so.

    Args:
        package: full name under which the package is being imported.
        digest: digest of the package's source. The module's ``BUILD`` must be equal to it.
    """
    _reasons[package] = _reason(f"{package}._native", digest)
    return not _reasons[package]


def find_native(module: str, build: str) -> ModuleType | None:
    """Return the compiled `module` that several packages share, or None if its ``BUILD`` is not `build`."""
    if os.environ.get(PURE) == "1":
        return None
    try:
        native = import_module(module)
        return native if build == native.BUILD else None
    except _IMPORT_ERRORS:
        return None


def why_pure(package: str) -> str:
    """Return why an imported package is not accelerated, as a sentence; empty if it is accelerated.

    Raises:
        KeyError: no package of that name that has two builds was imported.
    """
    return _reasons[package]


def _reason(module: str, digest: str) -> str:
    if os.environ.get(PURE) == "1":
        return f"{PURE}=1 is set"
    try:
        native = import_module(module)
    except ModuleNotFoundError as error:
        return "not compiled" if error.name == module else f"its compiled module cannot be imported: {error}"
    except _IMPORT_ERRORS as error:
        return f"its compiled module cannot be imported: {error}"
    return "" if digest == native.BUILD else "compiled before the package was regenerated"
