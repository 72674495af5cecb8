"""Run as ``python -m tests.integration.watching_process FOLDER``: watch a folder, never rescan it, print what changes.

One line for each file that is there or has changed; the line ``watching`` comes when the first scan is over.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from specwire.runtime.filemq.catalogue import Change, Put
from specwire.runtime.filemq.publication import Publication
from specwire.runtime.filemq.watcher import Watcher

NEVER_S = 3600.0


def tell(publication: Publication, changes: list[Change]) -> None:
    """Print the names of files that are there."""
    for change in changes:
        if isinstance(change, Put):
            print(change.entry.name, change.entry.size, flush=True)


async def watch(folder: Path) -> None:
    """Watch until the process is ended."""
    watcher = Watcher([Publication(folder)], tell, rescan_s=NEVER_S)
    await watcher.start()
    print("watching", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(watch(Path(sys.argv[1])))
