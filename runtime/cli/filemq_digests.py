"""Where `specwire filemq serve` keeps the digests of published files from one run to the next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import platformdirs
import typer

from specwire.runtime.cli.filemq_options import require_folder

if TYPE_CHECKING:
    from specwire.runtime.filemq.digeststore import DigestStore

DigestsOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Keep the digests of the published files here, so that a restart does not read them again. "
        "Without this option they are in the user's own folder for caches.",
        show_default=False,
    ),
]

NoDigestsOption = Annotated[
    bool, typer.Option("--no-digests", help="Keep no digests: read every file at each start.")
]


@contextmanager
def open_digests(folder: Path | None, *, none: bool) -> Iterator[DigestStore | None]:
    """Open the store that the options ask for; raises ValueError."""
    if none:
        if folder is not None:
            raise ValueError("--digests and --no-digests exclude each other")
        yield None
        return
    if folder is not None:
        require_folder(folder, "--digests")
    from specwire.runtime.filemq.digeststore import DigestStore

    with closing(DigestStore(folder or platformdirs.user_cache_path("specwire", appauthor=False))) as store:
        yield store
