"""Lookup of templates, and diagnostics for faults in user templates.

Templates are searched in the user's folder, then in the emitter's package, then here. A template
only lays out text and makes no decisions, so users can change the layout by overriding it. A file
in the folder given with ``--templates`` replaces the template of the same name. The name
``specwire/<name>`` always includes our template, so an override can extend it. A name that begins
with ``_`` overrides nothing and can be included.

A fault in a user's template is a diagnostic with its position. A fault in our templates is raised
unchanged.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, cached_property
from pathlib import Path

import jinja2

from specwire.generator.diagnostics import Diagnostic, Diagnostics, Severity, Source, Span, SpecError

SUFFIX = ".j2"


@dataclass(frozen=True)
class Templates:
    """Template folders: the user's, and the package of an emitter with its own templates."""

    folder: Path | None = None
    package: str | None = None

    @cached_property
    def _environment(self) -> jinja2.Environment:
        own = [jinja2.FileSystemLoader(self.folder)] if self.folder else []
        brought = [_loader(self.package)] if self.package else []
        ours = [_loader(None), jinja2.PrefixLoader({"specwire": _loader(None)})]
        return jinja2.Environment(
            loader=jinja2.ChoiceLoader([*own, *brought, *ours]),
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            autoescape=False,
        )

    def render(self, name: str, view: Mapping[str, object]) -> str:
        """Return the template rendered with `view`; a name that `view` lacks is an error.

        Raises:
            SpecError: the user's template is invalid.
        """
        try:
            return self._environment.get_template(name).render(view)
        except Exception as error:
            place = self._place(error)
            if place is None:
                raise
            raise SpecError((_fault(*place, error),)) from error

    def _place(self, error: Exception) -> tuple[Path, int] | None:
        """Return the innermost position of the error in a user template, None if there is none."""
        if self.folder is None:
            return None
        places = list(_frames(error))
        if isinstance(error, jinja2.TemplateSyntaxError):
            places.append((error.filename or "", error.lineno))
        if isinstance(error, UnicodeDecodeError):
            octets = bytes(error.object)
            broken = (path for path in _files(self.folder) if path.read_bytes() == octets)
            places.extend((str(path), octets.count(b"\n", 0, error.start) + 1) for path in broken)
        own = [(Path(name), line) for name, line in places if self.folder in Path(name).parents]
        return own[-1] if own else None


def check_overrides(folder: Path, known: Iterable[str]) -> None:
    """Check that every template in the folder is used, to detect misspelled names.

    Raises:
        SpecError: a template has an unknown name; all such files are reported.
    """
    names = sorted(known)
    diagnostics = Diagnostics()
    for path in _files(folder):
        name = path.relative_to(folder).as_posix()
        if path.name.startswith("_") or name in names:
            continue
        close = get_close_matches(name, names, n=1)
        asked = f"did you mean {close[0]!r}? " if close else ""
        span = Span(Source(path.as_posix(), ""), 1, 1, 1, 1)
        diagnostics.error(
            "E801", span, f"no target has a template {name!r}",
            f"{asked}there are {', '.join(names)}; begin the name with '_' where others include it",
        )  # fmt: skip
    diagnostics.raise_errors()


def template_names(package: str | None = None) -> Iterator[str]:
    """Yield the names of the templates of `package`, of ours if it is None."""
    yield from (name for name in _loader(package).list_templates() if name.endswith(SUFFIX))


@cache
def _loader(package: str | None) -> jinja2.BaseLoader:
    return jinja2.PackageLoader(package or "specwire.generator", "templates")


def _files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob(f"*{SUFFIX}")) if path.is_file()]


def _frames(error: BaseException) -> Iterator[tuple[str, int]]:
    """Yield file and line of every call in the traceback; Jinja provides those of templates."""
    for frame, line in traceback.walk_tb(error.__traceback__):
        yield frame.f_code.co_filename, line


def _fault(path: Path, line: int, error: Exception) -> Diagnostic:
    source = Source(path.as_posix(), path.read_bytes().decode("utf-8", "replace"))
    text = source.line(line)
    start = len(text) - len(text.lstrip()) + 1
    match error:
        case jinja2.TemplateNotFound():
            told = f"there is no template {error.name!r}"
        case jinja2.TemplateError():
            told = error.message or type(error).__name__
        case UnicodeDecodeError():
            told = "the template is not UTF-8"
        case RecursionError():
            told = "the template includes itself; ours is 'specwire/<name>'"
        case _:
            told = f"{type(error).__name__}: {error}"
    return Diagnostic(Severity.ERROR, "E802", Span(source, line, start, line, len(text) + 1), told)
