"""Files of the packages of compiled protocols.

Each selected target writes its files of each package, if it has any for the protocol. The support
library, which all packages share (errors, monitors, slow paths), is in ``support/`` beside this
file. Links in specwire's own ``generated/`` lead to it, so every package, wherever it is, imports
it as ``specwire.generated.NAME``.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from errno import EEXIST
from itertools import chain
from pathlib import Path

from specwire.generator import ir
from specwire.generator.diagnostics import Diagnostic, Severity, Source, Span, SpecError
from specwire.generator.emit.files import format_sources
from specwire.generator.emit.templates import Templates, check_overrides, template_names
from specwire.generator.emit.write import Run, running
from specwire.generator.pipeline import Compilation
from specwire.generator.targets import MARK, MARKED_OCTETS, Target, TargetError, choose_targets

_COMMAND = re.compile(r"`specwire generate (?:\S+ )?- ?-target (\S+)`")
SUPPORT = "../generator/support"
"""Folder of the support library, relative to specwire's own ``generated/``."""
SUPPORT_SUFFIXES = (".py", ".pyx", ".pxd")


def package_files(
    protocols: Iterable[ir.Protocol],
    targets: Sequence[Target] | None = None,
    *,
    templates: Path | None = None,
    present: Mapping[str, Iterable[str]] | None = None,
    compilations: Iterable[Compilation] = (),
    overview: bool = False,
) -> dict[str, str]:
    """Return every file of the protocols' packages, formatted: path in the output folder -> text.

    Args:
        protocols: what to write packages of.
        targets: what to write of each, in this order; the default ones where None.
        templates: a folder whose templates take the place of those of the same name.
        present: for each protocol, the targets whose files its package has already, and keeps.
        compilations: what the protocols were compiled of, for targets that show it to people.
        overview: whether `protocols` are all there are, so that targets write of them together, too.

    Raises:
        TargetError: a plug-in has an error, or two targets write the same file.
        SpecError: a template of the user has an error.
    """
    chosen = choose_targets() if targets is None else targets
    brought = chain.from_iterable(target.template_names() for target in chosen)
    known = {*brought, *template_names()}
    if templates is not None:
        check_overrides(templates, known)
    looked = {target.emitter.templates: Templates(templates, target.emitter.templates) for target in chosen}
    made = {compilation.protocol.name: compilation for compilation in compilations}
    everything, kept = list(protocols), _Sources()

    def run(target: Target, names: frozenset[str], compilation: Compilation | None = None) -> Run:
        extra = "" if target.emitter.default else target.name
        return Run(looked[target.emitter.templates], names, extra, compilation)

    for protocol in everything:
        names = frozenset((*(target.name for target in chosen), *(present or {}).get(protocol.name, ())))
        for target in chosen:
            with running(run(target, names, made.get(protocol.name))):
                kept.keep(target, target.emit(protocol), f"{protocol.name}/")
    for target in chosen if overview else ():
        with running(run(target, frozenset())):
            kept.keep(target, target.overview(everything), "")
    if templates is not None or any(target.plug_in for target in chosen):
        _check_python(kept)
    return format_sources(kept.texts)


class _Sources:
    """The files of a run before formatting, and who writes each."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self._writers: dict[str, Target] = {}

    def keep(self, target: Target, files: Mapping[str, str], folder: str) -> None:
        for name, text in files.items():
            path = f"{folder}{name}"
            # Some systems take names that differ in case only for one.
            other = self._writers.setdefault(path.casefold(), target)
            if other is not target:
                raise TargetError(f"targets {other.name!r} and {target.name!r} both write {path}")
            self.texts[path] = text

    def writer(self, path: str) -> Target:
        return self._writers[path.casefold()]


def _check_python(sources: _Sources) -> None:
    """Point into the text that a plug-in or a user's template made, where it is no Python."""
    for name, text in sources.texts.items():
        if not name.endswith(".py"):
            continue
        try:
            ast.parse(text)
        except (SyntaxError, ValueError) as error:
            line, column = getattr(error, "lineno", None) or 1, getattr(error, "offset", None) or 1
            span = Span(Source(f"{name} (not written)", text), line, column, line, column + 1)
            target = sources.writer(name)
            who = target.plug_in or f"target {target.name!r}"
            told = getattr(error, "msg", None) or str(error)
            fault = Diagnostic(Severity.ERROR, "E803", span, f"{who} writes what is no Python: {told}")
            raise SpecError((fault,)) from error


def support_links(support: Path) -> dict[str, str]:
    """Return the links to the support library: name in ``generated/`` -> relative target.

    There is one for each module and each folder at the top of `support`.
    """
    folders = [item.name for item in support.iterdir() if item.is_dir() and item.name != "__pycache__"]
    modules = [item.name for item in support.iterdir() if item.suffix in SUPPORT_SUFFIXES]
    return {name: f"{SUPPORT}/{name}" for name in sorted(folders + modules)}


def wrong_links(folder: Path, links: Mapping[str, str]) -> dict[Path, str]:
    """Return the paths in `folder` that differ from `links`, with their targets.

    The target of a stale link, which leads to a module that no longer exists, is empty.
    """
    wrong = {folder / name: target for name, target in links.items() if _target_of(folder / name) != target}
    if links and folder.is_dir():
        others = (path for path in sorted(folder.iterdir()) if path.name not in links)
        wrong |= {path: "" for path in others if _target_of(path).startswith(f"{SUPPORT}/")}
    return wrong


def replace_links(folder: Path, links: Mapping[str, str]) -> list[Path]:
    """Make the links in `folder`, and remove stale ones; return the paths that changed.

    Raises:
        FileExistsError: a file or folder has the name of a link; nothing was changed.
        OSError: the folder cannot be written.
    """
    wrong = wrong_links(folder, links)
    for path in wrong:
        if path.exists() and not path.is_symlink():
            raise FileExistsError(EEXIST, "not a link to the support library: move it away", str(path))
    for path, target in wrong.items():
        folder.mkdir(parents=True, exist_ok=True)
        if not target:
            path.unlink()
            continue
        aside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        aside.symlink_to(target)
        aside.replace(path)
    return [*wrong]


def _target_of(path: Path) -> str:
    return os.readlink(path) if path.is_symlink() else ""


def is_generated(path: Path) -> bool:
    """Whether a file says of itself that specwire wrote it: such a file may be replaced."""
    return MARK in _head(path)


def written_for(path: Path) -> str | None:
    """Return the target that a generated file says it is of, empty for a default one; None for other files.

    So a run removes what its own targets do not write any more, and nothing that another run was asked for.
    """
    if not is_generated(path):
        return None
    found = _COMMAND.search(_head(path))
    return found[1] if found else ""


def _head(path: Path) -> str:
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.read(MARKED_OCTETS)
