"""What becomes of decoded messages: shown one after another, or written as a capture folder."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Protocol

from specwire.runtime.cli.console import messages, print_json
from specwire.runtime.cli.decode_lines import JsonLines, Lines
from specwire.runtime.cli.decode_message import show_message
from specwire.runtime.cli.decode_sources import Readers
from specwire.runtime.package_search import AT
from specwire.runtime.packages import load_package
from specwire.runtime.pcap.choosing import protocol_name
from specwire.runtime.pcap.rows import Row

WRITTEN_EVERY_S = 1.0


class Sink(Protocol):
    """Takes rows."""

    def take(self, row: Row) -> None:
        """Take one row."""

    def pause(self) -> None:
        """There is nothing more for a while."""

    def end(self) -> None:
        """There is nothing more."""


class Shown:
    """Prints rows: a line each, or each with all it holds, as a message is that is alone in a hex dump."""

    def __init__(self, readers: Readers, *, at_once: bool, details: bool, json: bool) -> None:
        packages = [*readers.packages, *readers.by_port.values()]
        self._packages = {protocol_name(package): package for package in packages}
        lines = JsonLines if json else Lines
        self._lines = lines(self._packages, at_once=at_once)
        self._details = details and not json
        self._held: Row | None = None
        self._may_be_alone = not json

    def take(self, row: Row) -> None:
        """See `Sink.take`."""
        if self._may_be_alone and row.ts is None:
            self._held, self._may_be_alone = row, False
            return
        self._may_be_alone = False
        self._release()
        self._show(row, details=self._details)

    def pause(self) -> None:
        """Show what may not wait."""
        self._release()

    def end(self) -> None:
        """Show the message that was alone."""
        if self._held is not None:
            self._show(self._held, details=True)

    def _release(self) -> None:
        if self._held is not None:
            self._show(self._held, details=self._details)
            self._held = None

    def _show(self, row: Row, *, details: bool) -> None:
        if details and row.message is not None:
            name = str(row.protocol)
            package = load_package(f"{name}{AT}{row.edition}") if row.edition else self._packages[name]
            show_message(package, row.message, row.frames)
        else:
            self._lines.show(row)


class Written:
    """Writes rows to a capture folder and tells what it wrote."""

    def __init__(self, folder: Path, readers: Readers, *, json: bool) -> None:
        from specwire.runtime.pcap.recording import Recording

        packages = [*readers.packages, *readers.by_port.values()]
        self._editions = {protocol_name(package): str(package.EDITION) for package in packages}
        self._folder = folder
        self._recording = Recording(folder)
        self._json = json
        self._written_s = time.monotonic()

    def take(self, row: Row) -> None:
        """See `Sink.take`."""
        self._recording.add(row, row.edition or self._editions.get(row.protocol or "", ""))

    def pause(self) -> None:
        """Write what was taken, so that readers see it; not at every moment, for that makes many small segments."""
        if time.monotonic() - self._written_s >= WRITTEN_EVERY_S:
            self._recording.flush()
            self._written_s = time.monotonic()

    def end(self) -> None:
        """Write what is left, and tell how much it was."""
        self._recording.flush()
        written = self._recording.taps.written
        if self._json:
            print_json(
                {"folder": str(self._folder), "written": written, "left_out": self._recording.taps.left_out}
            )
            return
        told = ", ".join(f"{count:,} {name}" for name, count in written.items()) or "no"
        messages().print(f"{told} messages written to {self._folder}", markup=False, soft_wrap=True)
