"""Grammars of a Git commit, compared with those of the working tree.

    commit --git--> temporary folder --compile--> old IR
    working tree --compile--> new IR; old IR, new IR --compare--> changes

A protocol changed if a file in its folder, or in the folder of a protocol that it extends, differs.
Only changed protocols are compiled.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from specwire.generator.abnf.sources import GRAMMAR
from specwire.generator.compare.impact import ProtocolChange, compare_editions
from specwire.generator.diagnostics import Diagnostic, Diagnostics, SpecError
from specwire.generator.pipeline import compile_protocol
from specwire.generator.profile.reader import PROFILE, load_profile

_FILE_MODES = (b"100644", b"100755")
_OF_ANOTHER_REPOSITORY = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")
"""Variables that Git sets for its hooks, and that would change which repository is read."""


class RevisionError(Exception):
    """Raised if there is no such commit or no such protocol, with one sentence."""


def changes_since(revision: str, grammars: Path, names: Sequence[str] = ()) -> tuple[ProtocolChange, ...]:
    """Return the protocols in the folder `grammars` that differ from the commit `revision`, by name.

    Args:
        names: protocols of the commit or of the folder; all where it is empty.

    Raises:
        RevisionError: Git or the commit cannot be used, or there is no such protocol.
        SpecError: one of the editions has an error; places in the commit begin with ``revision:``.
    """
    with _grammars_at(revision, grammars) as before:
        old, new = _protocols(before), _protocols(grammars)
        unknown = [name for name in names if name not in old | new]
        if unknown:
            raise RevisionError(f"neither {grammars} nor {revision} has a protocol {unknown[0]!r}")
        found: list[ProtocolChange] = []
        faults: dict[Diagnostic, None] = {}
        for name in sorted(names or old | new):
            try:
                change = _change(
                    name, old.get(name), new.get(name), f"{revision}:{grammars.as_posix()}/{name}"
                )
            except SpecError as error:
                faults |= dict.fromkeys(error.diagnostics)
            else:
                found += [change] if change else []
    if faults:
        raise SpecError(tuple(faults))
    return tuple(found)


def _change(name: str, old: Path | None, new: Path | None, shown: str) -> ProtocolChange | None:
    if old is None or new is None:
        return ProtocolChange(name, "added" if old is None else "removed")
    if _content(old) == _content(new):
        return None
    before = compile_protocol(old, shown=shown).protocol
    after = compile_protocol(new, shown=new.as_posix()).protocol
    return ProtocolChange(name, "changed", compare_editions(before, after))


def _protocols(grammars: Path) -> dict[str, Path]:
    """Return the folders of protocols by name; links are not followed, as Git does not."""
    return {
        path.name: path
        for path in grammars.iterdir()
        if path.is_dir()
        and not path.is_symlink()
        and any((path / name).is_file() for name in (PROFILE, GRAMMAR))
    }


def _content(folder: Path) -> dict[str, bytes]:
    """Return the visible files of a protocol and of those that it extends, by folder and name."""
    try:
        levels = [level.folder for level in load_profile(folder, Diagnostics(), shown="").levels]
    except SpecError:
        levels = [folder]  # compilation reports the error
    files = (path for level in levels for path in level.rglob("[!.]*") if path.is_file())
    return {path.relative_to(folder.parent).as_posix(): path.read_bytes() for path in files}


@contextmanager
def _grammars_at(revision: str, grammars: Path) -> Iterator[Path]:
    """Yield a temporary folder with the files of the folder `grammars` in a commit."""
    commit = _commit(revision, grammars)
    listed = _git(grammars, "ls-tree", "-r", "-z", commit)
    entries = [entry.partition(b"\t") for entry in listed.split(b"\0") if entry]
    blobs = {os.fsdecode(name): about.split()[2] for about, _, name in entries if about[:6] in _FILE_MODES}
    contents = _contents(grammars, list(blobs.values()))
    with TemporaryDirectory(prefix="specwire-") as scratch:
        for name, octets in zip(blobs, contents, strict=True):
            path = Path(scratch, PurePosixPath(name))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(octets)
        yield Path(scratch)


def _commit(revision: str, grammars: Path) -> str:
    try:
        _git(grammars, "rev-parse", "--git-dir")
    except subprocess.CalledProcessError as error:
        told = os.fsdecode(error.stderr).strip().partition("\n")[0]
        if "not a git repository" in told:
            told = "it is in no Git repository, so there is no commit to compare with"
        raise RevisionError(f"{grammars}: {told}") from None
    except FileNotFoundError:
        raise RevisionError("git is not installed: compare two folders instead") from None
    try:
        name = _git(
            grammars, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"
        )
    except subprocess.CalledProcessError:
        raise RevisionError(
            f"there is no commit {revision!r} in this repository: fetch it, or name another one"
        ) from None
    return name.decode().strip()


def _contents(grammars: Path, blobs: Sequence[bytes]) -> Iterator[bytes]:
    """Yield the contents of blobs, which `git cat-file` prints each after a line with its size."""
    output = _git(grammars, "cat-file", "--batch", octets=b"".join(blob + b"\n" for blob in blobs))
    start = 0
    for _ in blobs:
        begin = output.index(b"\n", start) + 1
        end = begin + int(output[start:begin].split()[2])
        yield output[begin:end]
        start = end + 1


def _git(folder: Path, *words: str, octets: bytes | None = None) -> bytes:
    environment = {name: value for name, value in os.environ.items() if name not in _OF_ANOTHER_REPOSITORY}
    command = ["git", "-C", str(folder), *words]
    run = subprocess.run(
        command, input=octets, capture_output=True, check=True, env={**environment, "LC_ALL": "C"}
    )
    return run.stdout
