"""Compile what packages have in C; everything else about the installation is in pyproject.toml.

Each ``generated/**/*.pyx`` and ``runtime/**/*.pyx`` becomes an extension module beside it, by Cython and the system's
C compiler. None of them is needed: a package works without, only slower. So what cannot be compiled is left out, with
one line that says so, and the installation goes on; ``SPECWIRE_PURE=1`` leaves all of it out. C sources are written to
``build/``, and what is newer than its sources is not compiled again.
"""

from __future__ import annotations

import glob
import os
import subprocess
import sys
from distutils.errors import CompileError
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

SOURCE = Path("src")
COMPILED = ("generated", "runtime")
"""The parts of the package that have sources in Cython."""


def extensions() -> list[Extension]:
    """Return a module for each source in Cython; its name says where the source is."""
    if os.environ.get("SPECWIRE_PURE") == "1":
        return []
    # Unlike `Path.rglob`, `glob` follows the links to folders of the support library.
    patterns = [f"{SOURCE}/specwire/{part}/**/*.pyx" for part in COMPILED]
    paths = sorted(Path(found) for pattern in patterns for found in glob.glob(pattern, recursive=True))
    names = [".".join(path.relative_to(SOURCE).with_suffix("").parts) for path in paths]
    return [Extension(name, sources=[], optional=True) for name in names]


class BuildCodecs(build_ext):
    """Builds what can be built: on all cores, each module by itself."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count() or 1

    def build_extensions(self) -> None:
        """Build every module, or none where there is nothing to build with."""
        trouble = self._trouble()
        if trouble:
            print(f"specwire: codecs are not compiled and stay in Python: {trouble}", file=sys.stderr)
        else:
            super().build_extensions()

    def build_extension(self, ext: Extension) -> None:
        """Compile one module, from Cython to C to machine code, unless it is there and current."""
        pyx = SOURCE.joinpath(*ext.name.split(".")).with_suffix(".pyx")
        depends = [pyx, *sorted(SOURCE.glob("specwire/generated/*.pxd"))]
        source = Path(self.build_temp, "c", f"{ext.name}.c")
        ext.depends = [str(path) for path in depends]
        ext.sources = [str(source)]
        if self.compiler.compiler_type == "unix":
            ext.extra_compile_args = ["-O2", "-g0"]
        try:
            if self.force or not _newer(source, depends):
                _translate(pyx, source, ext.name)
            super().build_extension(ext)
        except (CompileError, subprocess.CalledProcessError):
            print(
                f"specwire: {ext.name} is left out, its package stays in Python: see above", file=sys.stderr
            )

    def _trouble(self) -> str:
        """Say what is missing to compile anything, in words; an empty text where nothing is."""
        if not _runs([sys.executable, "-m", "cython", "--version"]):
            return "Cython is missing; pip install cython"
        compiler = getattr(self.compiler, "compiler_so", None)
        if compiler is None:
            return ""  # not a Unix compiler: what it cannot do shows at each module
        folders = [f"-I{folder}" for folder in self.compiler.include_dirs]
        if not _runs([*compiler, *folders, "-fsyntax-only", "-x", "c", "-"], given="#include <Python.h>\n"):
            return f"{compiler[0]} or the headers of Python are missing (packages gcc and python3-dev, or the like)"
        return ""


def _runs(command: list[str], given: str = "") -> bool:
    """Whether `command` can be run and succeeds, with `given` as its input."""
    try:
        return (
            subprocess.run(command, input=given, text=True, capture_output=True, check=False).returncode == 0
        )
    except OSError:
        return False


def _translate(pyx: Path, source: Path, name: str) -> None:
    """Write the C source of a module, in a process of its own: several are translated at once."""
    source.parent.mkdir(parents=True, exist_ok=True)
    options = ["-3", "-I", str(SOURCE), "--module-name", name, "-o", str(source)]
    subprocess.run([sys.executable, "-m", "cython", *options, str(pyx)], check=True)


def _newer(made: Path, sources: list[Path]) -> bool:
    return made.exists() and made.stat().st_mtime > max(path.stat().st_mtime for path in sources)


setup(ext_modules=extensions(), cmdclass={"build_ext": BuildCodecs})
