"""One folder whose files are shared: listed, described, and read a piece at a time.

Every request walks from the root anew, one component after the other and through no symbolic link, so that whatever
happens in the folder meanwhile, nothing outside it is ever read. Nothing is kept open between requests: a peer that never comes
back costs nothing, and one that comes back goes on where it was.

A file has a `version`, which changes when the file does. Who names it when reading gets pieces of that version or an error, never a
mixture; the digests at the end prove it.

The methods block, and may be called from several threads.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from specwire.runtime.containment import ContainmentError, open_folder, open_leaf, open_root
from specwire.runtime.norfab.files.digests import Digests, UnstableError, version_of
from specwire.runtime.norfab.files.urls import UrlError, make_url, read_url

MAX_PIECE_OCTETS = 1024 * 1024
MAX_LISTED = 100_000
"""Names in one answer."""
MAX_WALKED_DEPTH = 64


class ShareError(Exception):
    """What was asked for is not given; `status` is that of the answer."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Details(NamedTuple):
    """One file: digests in lower-case hexadecimal."""

    size: int
    md5: str
    sha256: str
    version: str


class Share:
    """The files below one folder.

    Args:
        root: the folder; it need not be there all the time.
        private: folders that are not shared, wherever they are, such as that of the broker's keys.
    """

    def __init__(self, root: Path, private: Sequence[Path] = ()) -> None:
        self._root, self._private = root, tuple(private)
        self._digests = Digests()

    def fault(self) -> str:
        """Return why nothing can be shared, for whoever runs this; empty where it can."""
        try:
            os.close(open_root(self._root))
        except OSError as error:
            return f"{self._root} cannot be opened: {error.strerror}"
        return ""

    def list_names(self, url: str) -> list[str]:
        """Return the names in a folder, in order; raises ShareError."""
        with _explained(url), self._folder(_components(url, folder=True)) as folder:
            return sorted(name for name, _ in _entries(folder))

    def walk(self, url: str) -> list[str]:
        """Return the URLs of all files in and below a folder but hidden ones; raises ShareError."""
        components = _components(url, folder=True)
        urls: list[str] = []
        with _explained(url), self._folder(components) as folder:
            for path in self._walk(folder, components):
                urls.append(make_url(path))
                if len(urls) > MAX_LISTED:
                    raise ShareError(400, f"more than {MAX_LISTED} files: ask for a folder further down")
        return urls

    def describe(self, url: str, is_abandoned: Callable[[], bool] = lambda: False) -> Details:
        """Return size, digests and version of a file; raises ShareError. Reads all of a file that it does not know yet."""
        with _explained(url), self._file(_components(url)) as descriptor:
            digest = self._digests.of(descriptor, is_abandoned)
            return Details(digest.size, digest.md5, digest.sha256, digest.version)

    def measure(self, url: str) -> tuple[int, str]:
        """Return size and version of a file; raises ShareError."""
        with _explained(url), self._file(_components(url)) as descriptor:
            state = os.fstat(descriptor)
            return state.st_size, version_of(state)

    def read(self, url: str, offset: int, size: int, version: str = "") -> bytes:
        """Return up to `size` octets of a file; less only at its end. Raises ShareError.

        Args:
            version: where given, the file must be in this version before and after; 417 says that it is not.
        """
        if not 0 < size <= MAX_PIECE_OCTETS:
            raise ShareError(400, f"chunk_size is 1 to {MAX_PIECE_OCTETS} octets")
        if not 0 <= offset < 2**63:
            raise ShareError(400, "offset is not negative, and less than 2^63")
        with _explained(url), self._file(_components(url)) as descriptor:
            _require(descriptor, version, url)
            piece = _read_fully(descriptor, offset, size)
            _require(descriptor, version, url)
            return piece

    @contextmanager
    def _file(self, components: tuple[str, ...]) -> Iterator[int]:
        *folders, leaf = components
        with self._folder(tuple(folders)) as folder:
            descriptor = open_leaf(folder, leaf)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    @contextmanager
    def _folder(self, components: tuple[str, ...]) -> Iterator[int]:
        private = self._private_folders()
        descriptor = open_root(self._root)
        try:
            for component in components:
                inner = open_folder(descriptor, [component])
                os.close(descriptor)
                descriptor = inner
                if _identity(os.fstat(descriptor)) in private:
                    raise FileNotFoundError
            yield descriptor
        finally:
            os.close(descriptor)

    def _private_folders(self) -> set[tuple[int, int]]:
        found = set()
        for path in self._private:
            try:
                found.add(_identity(os.stat(path)))
            except OSError:
                continue  # it is not there now, so nobody reaches it
        return found

    def _walk(self, folder: int, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        private = self._private_folders()
        for name, state in sorted(_entries(folder)):
            if stat.S_ISREG(state.st_mode) and not name.startswith("."):
                yield (*path, name)
            elif stat.S_ISDIR(state.st_mode) and len(path) < MAX_WALKED_DEPTH:
                if _identity(state) in private or (name.startswith("__") and name.endswith("__")):
                    continue
                try:
                    inner = open_folder(folder, [name])
                except (OSError, ContainmentError):
                    continue  # gone, swapped or forbidden meanwhile: nothing to list
                try:
                    yield from self._walk(inner, (*path, name))
                finally:
                    os.close(inner)


def _components(url: str, *, folder: bool = False) -> tuple[str, ...]:
    try:
        return read_url(url, folder=folder)
    except UrlError as error:
        raise ShareError(400, str(error)) from error


@contextmanager
def _explained(url: str) -> Iterator[None]:
    """Turn what can go wrong with the files into ShareError; paths of this machine are not told."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        raise ShareError(404, f"{url[:200]} is not there") from None
    except ContainmentError as error:
        raise ShareError(404, f"{url[:200]} {error}") from None
    except UnstableError as error:
        raise ShareError(500, f"{url[:200]} {error}") from None
    except OSError as error:
        raise ShareError(500, f"{url[:200]} cannot be read: {error.strerror}") from None


def _entries(folder: int) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the names that a URL can say, and what they are."""
    with os.scandir(folder) as listing:
        for count, entry in enumerate(listing):
            if count >= MAX_LISTED:
                raise ShareError(400, f"the folder has more than {MAX_LISTED} names")
            try:
                entry.name.encode()
                yield entry.name, entry.stat(follow_symlinks=False)
            except (UnicodeEncodeError, FileNotFoundError):
                continue


def _identity(state: os.stat_result) -> tuple[int, int]:
    return state.st_dev, state.st_ino


def _require(descriptor: int, version: str, url: str) -> None:
    if version and version_of(os.fstat(descriptor)) != version:
        raise ShareError(417, f"{url[:200]} has changed")


def _read_fully(descriptor: int, offset: int, size: int) -> bytes:
    """Return `size` octets, less at the end of the file: one call to the system may give less anywhere."""
    pieces = []
    while size and (piece := os.pread(descriptor, size, offset)):
        pieces.append(piece)
        offset, size = offset + len(piece), size - len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
