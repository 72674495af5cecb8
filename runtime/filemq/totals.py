"""How many files a publication has, and how large they are together."""

from __future__ import annotations

from specwire.runtime.filemq.catalogue import Entry


class Totals:
    """Sums that are kept up to date with each change, so that telling them costs no walk through the files."""

    def __init__(self) -> None:
        self.files = self.octets = 0

    def replace(self, old: Entry | None, new: Entry | None) -> None:
        """The file `old` is now `new`; None for one that is not there."""
        if old is not None:
            self.files -= 1
            self.octets -= old.size
        if new is not None:
            self.files += 1
            self.octets += new.size
