"""The generated packages that a command can name."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from types import ModuleType

from specwire import generated
from specwire.runtime.cli.console import fail


def protocol_names() -> list[str]:
    """Return the names of the generated packages, sorted."""
    return sorted(module.name for module in pkgutil.iter_modules(generated.__path__) if module.ispkg)


def load_protocol(name: str) -> ModuleType:
    """Return the generated package `name`; a name that there is no package for ends the command."""
    names = protocol_names()
    if name not in names:
        fail(f"there is no protocol {name!r}; there are {', '.join(names)}")
    return import_module(f"specwire.generated.{name}")
