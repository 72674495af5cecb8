"""The files that a publication knows, by name, with what their content was when they were read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from specwire.runtime.filemq.digests import Digest


class KnownFiles:
    """Digest of each file by its virtual name, and which folders have such files."""

    def __init__(self) -> None:
        self._files: dict[str, Digest] = {}
        self._folders: Counter[str] = Counter()

    def __bool__(self) -> bool:
        return bool(self._files)

    def find(self, name: str) -> Digest | None:
        """Return what is known of a file."""
        return self._files.get(name)

    def put(self, name: str, digest: Digest) -> None:
        """Note a file."""
        if name not in self._files:
            self._folders.update(_folders_of(name))
        self._files[name] = digest

    def remove(self, name: str) -> bool:
        """Forget a file; False where it was not known."""
        if self._files.pop(name, None) is None:
            return False
        for folder in _folders_of(name):
            self._folders[folder] -= 1
            if not self._folders[folder]:
                del self._folders[folder]
        return True

    def all_but(self, names: set[str]) -> set[str]:
        """Return the names of all files but these."""
        return self._files.keys() - names

    def under(self, places: Iterable[str]) -> set[str]:
        """Return the names of the files below these folders, in one walk where there are any."""
        folders = {place for place in places if place in self._folders}
        if not folders:
            return set()
        return {name for name in self._files if any(map(folders.__contains__, _folders_of(name)))}


def _folders_of(name: str) -> Iterator[str]:
    """Yield the folders that a file is in, but not the root."""
    end = name.find("/", 1)
    while end > 0:
        yield name[:end]
        end = name.find("/", end + 1)
