"""Plug-ins for the tests: packages with an entry point, as an installation leaves them on the path."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from specwire.generator import targets
from specwire.generator.emit import templates

_NUMBER = itertools.count()

LUA = '''
from specwire.generator import ir
from specwire.generator.emit.write import Emitter, compilation, notice, render, takes_part


def emit(protocol: ir.Protocol) -> dict[str, str]:
    """A dissector, and a page that points to the codec where there is one."""
    if not protocol.messages:
        return {}
    view = {"protocol": protocol, "notice": notice(protocol).replace("\\n", "\\n-- ")}
    codec = "see codec.py" if takes_part("codec") else "no codec"
    return {
        "lua/dissector.lua": render("dissector.lua.j2", **view),
        "notes.md": f"<!-- {notice(protocol)} -->\\n{len(compilation().grammar.rules)} rules, {codec}\\n",
    }


EMITTER = Emitter(None, emit, default=False, templates="%(module)s")
'''
DISSECTOR = """\
-- {{ notice }}
local proto = Proto("{{ protocol.name }}", "{{ protocol.title }}")
{% for message in protocol.messages %}
messages["{{ message.name }}"] = {{ loop.index }}
{% endfor %}
"""


@contextmanager
def installed(folder: Path, source: str, *, name: str = "lua", module: str = "") -> Iterator[str]:
    """Put a package of one target on the path, with the metadata of an installed distribution.

    `%(module)s` in the source is the module's own name, which is new at every call where none is given.

    Yields:
        The module's name.
    """
    module = module or f"plug_in_{next(_NUMBER)}"
    package, metadata = folder / module, folder / f"{module}-1.2.dist-info"
    (package / "templates").mkdir(parents=True)
    metadata.mkdir()
    (package / "__init__.py").write_text(source.replace("%(module)s", module), encoding="utf-8")
    (package / "templates" / "dissector.lua.j2").write_text(DISSECTOR, encoding="utf-8")
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.2\n")
    points = f"[specwire.emitters]\n{name} = {module}:EMITTER\n"
    (metadata / "entry_points.txt").write_text(points, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        forget()
        try:
            yield module
        finally:
            sys.modules.pop(module, None)
            forget()


def forget() -> None:
    """Let the generator look for targets and templates again."""
    targets._entries.cache_clear()
    targets._load.cache_clear()
    templates._loader.cache_clear()
