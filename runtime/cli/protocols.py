"""The packages that a command can name: those that come with specwire, or made on the spot of a grammar."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

from specwire import generated
from specwire.runtime.cli.console import fail, meant
from specwire.runtime.cli.grammars import compile_all, grammars_folder, protocol_folders

MADE = ("package", "columns", "schema")
"""The targets that commands look at."""

_KEPT: list[TemporaryDirectory[str]] = []
"""Folders of packages made on the spot, which import modules late: they live as long as the process."""


def protocol_names() -> list[str]:
    """Return the names of the generated packages, sorted."""
    # A package of a protocol has a codec; what the packages share stands beside them, in folders as well.
    return sorted(codec.parent.name for root in generated.__path__ for codec in Path(root).glob("*/codec.py"))


def complete_protocol(incomplete: str) -> list[str]:
    """Return the names that begin so: what a shell offers where a protocol is wanted."""
    return [name for name in protocol_names() if name.startswith(incomplete)]


def load_protocol(name: str, grammars: Path | None = None) -> ModuleType:
    """Return the package of protocol `name`: the one that comes with specwire, or made of `grammars` now.

    A name that there is no package for ends the command.

    Raises:
        SpecError: the grammar has a fault.
    """
    if grammars is not None:
        return _make(name, grammars)
    names = protocol_names()
    if name not in names:
        fail(f"there is no protocol {name!r}; there are {', '.join(names)}{meant(name, names)}")
    return import_module(f"specwire.generated.{name}")


def class_of_message(package: ModuleType, name: str) -> str:
    """Return the class of a message, which may be named as the class or as the grammar does, in any case.

    A name that is none ends the command.
    """
    classes: Mapping[str, Any] = package.MESSAGES
    known = {spelling.lower(): own for own, cls in classes.items() for spelling in (cls.NAME, own)}
    if name.lower() not in known:
        protocol = next(iter(classes.values())).PROTOCOL
        others = meant(name, classes) or f"; it has {', '.join(classes)}"
        fail(f"{protocol} has no message {name!r}{others}")
    return known[name.lower()]


def _make(name: str, grammars: Path) -> ModuleType:
    from specwire.generator.packages import package_files
    from specwire.generator.targets import choose_targets

    (compiled,) = compile_all(protocol_folders(grammars_folder(grammars), [name]))
    _KEPT.append(TemporaryDirectory(prefix="specwire-"))
    folder = Path(_KEPT[-1].name)
    for path, text in package_files([compiled.protocol], choose_targets(MADE)).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    package = folder / compiled.protocol.name
    # A name of its own, so that it is never taken for another module.
    spec = spec_from_file_location(f"specwire_made_{len(_KEPT)}_{package.name}", package / "__init__.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[module.__name__] = module
    spec.loader.exec_module(module)
    return module
