"""Pages of the site with the signatures and docstrings of the Python API, under ``reference/api/``.

A page is a list of modules, each with the names that docs/reference/api.md promises. `specwire.runtime` has one page
for each module that api.md lists; these follow the ``__all__`` of the code. Pages of `specwire.generated` and
`specwire.generator` are named in `_PAGES`. mkdocstrings reads the sources without importing them, so a page needs
neither Spark nor a compiled codec, and its text is written in the docstrings only.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import griffe
import yaml

from api_table import page_of, public_modules

FOLDER = "reference/api"
"""The folder of these pages in the site."""

_ROOT = Path(__file__).resolve().parents[1]
_SAMPLE = "specwire.generated.filemq"


@dataclass(frozen=True)
class Section:
    """One module of a page: the names to show (None: all public ones) and options of mkdocstrings."""

    module: str
    names: Sequence[str] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ApiPage:
    """A page: its file name without suffix, its title in the menu, what it begins with, and its modules."""

    name: str
    title: str
    opening: str
    sections: Sequence[Section]

    @property
    def place(self) -> str:
        """The path of its Markdown in the site."""
        return f"{FOLDER}/{self.name}.md"


_SHARED = ("DecodeError", "EncodeError", "Violation")
"""Names of `specwire.generated.errors` that every package offers too; they are described once."""

_NO_VALUES = {"show_attribute_values": False}
_INHERITED = {"inherited_members": True}

_PAGES = (
    ApiPage(
        "generated-package",
        "A generated package",
        "The modules of a generated package, with FILEMQ as the example. Packages of other protocols differ in their "
        "messages, constants and roles; [Codecs](../codecs.md) and [Dialogs](../dialogs.md) explain how to use them. "
        "The signatures are those of the Python build. [The C build](../../explanation/builds.md) has the same.",
        (
            Section(_SAMPLE, None, {**_NO_VALUES, "filters": ["!^_", "!^NAME$", "!^PROTOCOL$"]}),
            Section(f"{_SAMPLE}.machine", None, _NO_VALUES),
            Section(f"{_SAMPLE}.columns", ("SCHEMA", "decode", "encode"), _NO_VALUES),
            Section(f"{_SAMPLE}.schema", ("SCHEMAS", "TABLES", "DECODED"), _NO_VALUES),
            Section(f"{_SAMPLE}.constructs", ("MESSAGES", "parse", "build"), _NO_VALUES),
            Section(f"{_SAMPLE}.strategies", ("messages", "frames", "malformed_frames")),
        ),
    ),
    ApiPage(
        "generated-support",
        "What packages share",
        "Errors, and the classes that the classes of generated packages inherit from.",
        (
            Section("specwire.generated.errors", ("CodecError", "DecodeError", "EncodeError", "Violation")),
            Section("specwire.generated.messages", ("Message",), _INHERITED),
            Section("specwire.generated.session", ("DialogSession",)),
            Section("specwire.generated.stream", ("MessageStream",)),
        ),
    ),
    ApiPage(
        "generator-ir",
        "The IR",
        "The input of an emitter: a checked protocol as data. `specwire show ir PROTOCOL --json` prints it.",
        (Section("specwire.generator.ir"),),
    ),
    ApiPage(
        "generator-emitters",
        "Emitters",
        "What a package that adds a target of `specwire generate` imports. "
        "[Targets and templates](../emitters.md) shows how to write one.",
        (
            Section(
                "specwire.generator.emit.write", ("Emitter", "compilation", "notice", "render", "takes_part")
            ),
        ),
    ),
)


def pages() -> list[ApiPage]:
    """Return all pages in the order of the menu: those of `_PAGES`, then one for each module of the runtime."""
    runtime = (
        ApiPage(page_of(module), module.removeprefix("specwire."), "", (Section(module, None, _INHERITED),))
        for module in public_modules()
    )
    return [*_PAGES, *runtime]


def menu() -> list[dict[str, str]]:
    """Return the entries of the menu."""
    return [{page.title: page.place} for page in pages()]


def source_pages() -> dict[str, str]:
    """Return the Markdown of all pages by their places in the site."""
    return {page.place: _markdown(page) for page in pages()}


def _markdown(page: ApiPage) -> str:
    alone = len(page.sections) == 1
    heading = f"<code>{page.sections[0].module.replace('.', '.<wbr>')}</code>" if alone else page.title
    opening = f"{page.opening}\n\n" if page.opening else ""
    return f"---\ntitle: {page.title}\n---\n\n# {heading}\n\n{opening}" + "\n".join(
        _block(section, alone) for section in page.sections
    )


def _block(section: Section, alone: bool) -> str:
    """Return the lines that mkdocstrings replaces by a module; it gets no heading where the page has no other."""
    names = section.names or public_names(section.module)
    options = {
        "members": list(names),
        "heading_level": 2,
        "show_root_heading": not alone,
        "show_root_full_path": True,
        **section.options,
    }
    text = yaml.safe_dump({"options": options}, sort_keys=False, width=1000)
    return f"::: {section.module}\n" + "".join(f"    {line}\n" for line in text.splitlines())


def public_names(module: str) -> list[str]:
    """Return the ``__all__`` of a module without submodules and shared errors, else all that it defines, in order."""
    place = _ROOT.joinpath(*module.split(".")[1:])
    path = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    statements = ast.parse(path.read_text(encoding="utf-8")).body
    listed = next((found for statement in statements if (found := _listed(statement))), None)
    if listed is not None:
        return [name for name in listed if name not in _SHARED and not (place / f"{name}.py").exists()]
    return [name for statement in statements for name in _defined(statement) if not name.startswith("_")]


def _listed(statement: ast.stmt) -> list[str] | None:
    """Return the names of an ``__all__``; None for another statement."""
    match statement:
        case ast.Assign(targets=[ast.Name(id="__all__")], value=value):
            return [str(name) for name in ast.literal_eval(value)]
    return None


def _defined(statement: ast.stmt) -> list[str]:
    match statement:
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return [name]
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
            return [name]
    return []


class PythonBuild(griffe.Extension):
    """Reads the Python build of generated packages: the C build has no source that griffe can read."""

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """Let each name that a package imports from ``_native`` lead to ``codec``."""
        if "generated" not in pkg.modules:
            return
        for module in pkg.modules["generated"].modules.values():
            for name, member in module.members.items():
                if isinstance(member, griffe.Alias) and "._native." in member.target_path:
                    target = member.target_path.replace("._native.", ".codec.")
                    module.set_member(name, griffe.Alias(name, target, parent=module))
