"""Reading the chunks that the server's engine asks for, one file for each client at a time.

A file is read through the descriptor that was opened for it, and checked as it goes: its state must be the one
that the listing knows, at the first chunk and after every read. Where that proves nothing (the digest was taken
just after a change, or something happened to the file meanwhile that its times and size do not tell), at the end
its SHA-1 must be the one that was announced too. Anything else is `FileMovedError`, raised before the octets in
question are sent; so a client never gets the end of a file that is a mixture of two versions.
"""

from __future__ import annotations

import os

from specwire.runtime.containment import ContainmentError
from specwire.runtime.filemq.catalogue import Entry
from specwire.runtime.filemq.digests import UnstableError, digest_file, new_sha1, sign
from specwire.runtime.filemq.publication import Publication


class FileMovedError(Exception):
    """A published file is not what the listing says any more."""


class TransferReader:
    """One file on its way to one client; the methods are called one after the other, from any thread.

    Args:
        offset: where to begin: the client holds what comes before.
    """

    def __init__(self, publication: Publication, entry: Entry, offset: int = 0) -> None:
        self._publication, self._entry = publication, entry
        self._descriptor = -1
        self._touched_ns = 0
        self._sha1 = new_sha1() if entry.fresh and offset == 0 else None
        self._offset = offset

    @property
    def complete(self) -> bool:
        """Whether the last octet was read."""
        return self._offset == self._entry.size

    def read(self, size: int) -> bytes:
        """Return the next `size` octets; raises FileMovedError."""
        try:
            if self._descriptor < 0:
                self._descriptor = self._publication.open_entry(self._entry.name)
                self._touched_ns = os.fstat(self._descriptor).st_ctime_ns
            chunk = os.pread(self._descriptor, size, self._offset)
            state = os.fstat(self._descriptor)
        except (OSError, ContainmentError) as error:
            raise FileMovedError(str(error)) from error
        if self._sha1 is not None:
            self._sha1.update(chunk)
        self._offset += len(chunk)
        if len(chunk) != size or sign(state) != self._entry.signature:
            raise FileMovedError("was changed")
        if self.complete and not self._has_digest(state):
            raise FileMovedError("has another digest")
        return chunk

    def _has_digest(self, state: os.stat_result) -> bool:
        """Tell whether what was read is what was announced."""
        if self._sha1 is not None:
            return self._sha1.hexdigest().upper() == self._entry.sha1
        if state.st_ctime_ns == self._touched_ns and not self._entry.fresh:
            return True
        try:  # renamed, or written to and its time put back; or fresh, and begun in the middle
            return digest_file(self._descriptor).sha1 == self._entry.sha1
        except (OSError, UnstableError):
            return False

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
