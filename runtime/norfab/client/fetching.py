"""Files that the broker shares, for a client: fetched by its questions, kept in its folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from specwire.runtime.norfab.client.results import Answer

CACHE = "files"
"""Folder of fetched files, below the client's."""


class Ask(Protocol):
    """Asks a service inside the broker."""

    async def __call__(self, service: str, task: str, *, kwargs: Mapping[str, Any]) -> Answer:
        """Return the answer."""


async def fetch_file(ask: Ask, folder: Path | None, url: str, destination: Path | None) -> Path:
    """Return where the file is that `url` names; raises as `NorfabClient.fetch` does."""
    from specwire.runtime.norfab.files import FileCache, fetch  # what most clients never need

    async def ask_for_file(service: str, task: str, arguments: Mapping[str, Any]) -> tuple[int, bytes]:
        answer = await ask(service, task, kwargs=arguments)
        return answer.code, answer.body

    if folder is not None:
        return await fetch(url, ask_for_file, destination, cache=FileCache(folder / CACHE))
    if destination is None:
        raise ValueError("a client without a folder has no cache: name a destination")
    with TemporaryDirectory(prefix="specwire-norfab-") as place:
        return await fetch(url, ask_for_file, destination, cache=FileCache(Path(place)))
