"""Requests of a worker to its broker: files, and services of the broker.

They use a second connection, as a client, which is opened for the first request: the worker's own
connection carries only jobs. Fetched files are cached in the worker's folder.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specwire.runtime.transport.security import Security

if TYPE_CHECKING:
    from specwire.runtime.norfab.client import NorfabClient

CLIENT_SUFFIX = "-NFPClient"
FILES = "files"
TIMEOUT_S = 30.0


class Requests:
    """Implementation of `specwire.runtime.norfab.worker.view.Broker` with a client.

    Args:
        endpoints: brokers. Only those with the same credentials as the first one are used.
        folder: for the cache of files.
    """

    def __init__(
        self,
        endpoints: Sequence[str],
        name: str,
        security: Sequence[Security],
        folder: Path,
        protocol: str,
    ) -> None:
        self._endpoints = [
            endpoint for endpoint, proof in zip(endpoints, security, strict=True) if proof == security[0]
        ]
        self._name, self._security, self._protocol = name + CLIENT_SUFFIX, security[0], protocol
        self._folder = folder
        self._client: NorfabClient | None = None
        self._making = asyncio.Lock()

    async def fetch(self, url: str) -> Path:
        """Return the local copy of a file; raises OSError."""
        from specwire.runtime.norfab.files import FetchError, FileCache, UrlError, fetch

        try:
            return await fetch(url, self._answer, cache=FileCache(self._folder / FILES))
        except (FetchError, UrlError) as error:
            raise OSError(str(error)) from None

    async def ask(self, service: str, task: str, kwargs: dict[str, Any]) -> Any:
        """Return the answer of a service; raises OSError."""
        from specwire.runtime.norfab.client import RequestError

        client = await self._connect()
        try:
            return await client.manage(service, task, timeout=TIMEOUT_S, **kwargs)
        except (RequestError, ValueError) as error:
            raise OSError(str(error)) from None

    async def _answer(self, service: str, task: str, arguments: Mapping[str, Any]) -> tuple[int, bytes]:
        answer = await (await self._connect()).ask(service, task, kwargs=arguments, timeout=TIMEOUT_S)
        return answer.code, answer.body

    async def _connect(self) -> NorfabClient:
        from specwire.runtime.norfab.client import NorfabClient

        async with self._making:
            if self._client is None:
                client = NorfabClient(
                    self._endpoints, name=self._name, security=self._security, protocol=self._protocol
                )
                await client.start()
                self._client = client
            return self._client

    async def close(self) -> None:
        """Close the connection, if there is one."""
        async with self._making:
            client, self._client = self._client, None
        if client is not None:
            await client.stop()
