"""Templates: found in the user's folder first, then with the emitter, then here; faults told by file and line.

A template lays out and decides nothing, so a user who wants another layout overrides the file: one in the
folder given with ``--templates`` takes the place of the template of its name. What it includes by the name
``specwire/<name>`` is ours in any case, so that an override may be ours and a little more. A name that begins
with ``_`` overrides nothing and is there to be included.

What goes wrong in a user's template is a diagnostic that points into it; what goes wrong in ours is our fault
and is raised as it is.
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
    """Where templates are looked for: the user's folder, and the package of an emitter that brings its own."""

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
        """Return the template filled with `view`; a name the view lacks is an error, never an empty text.

        Raises:
            SpecError: the user's template is at fault.
        """
        try:
            return self._environment.get_template(name).render(view)
        except Exception as error:
            place = self._place(error)
            if place is None:
                raise
            raise SpecError((_fault(*place, error),)) from error

    def _place(self, error: Exception) -> tuple[Path, int] | None:
        """The last line of a template of the user that the error came through, None where it met none."""
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
    """Refuse templates that would never be used: a name that no target has is a slip of the pen.

    Raises:
        SpecError: with every such file.
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
    """Yield the names of the templates that `package` brings, of ours where none is named."""
    yield from (name for name in _loader(package).list_templates() if name.endswith(SUFFIX))


@cache
def _loader(package: str | None) -> jinja2.BaseLoader:
    return jinja2.PackageLoader(package or "specwire.generator", "templates")


def _files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob(f"*{SUFFIX}")) if path.is_file()]


def _frames(error: BaseException) -> Iterator[tuple[str, int]]:
    """File and line of every call that the error came through; Jinja gives those of templates."""
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
