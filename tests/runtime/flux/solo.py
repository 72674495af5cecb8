"""A broker alone in its instance: the engine and the connector, with as little between them as can be."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

from specwire.generated.flux import AnyMessage, Response
from specwire.runtime.flux.actions import Action, CloseClient, ToClient, ToService
from specwire.runtime.flux.broker import BrokerEngine
from specwire.runtime.flux.config import Settings
from specwire.runtime.flux.connector import Connector
from specwire.runtime.flux.service import ServiceHost
from specwire.runtime.flux.topology import Tree


class Solo:
    """Rank 0 of 1."""

    def __init__(self, path: str) -> None:
        self.uri = f"local://{path}"
        self._clock = asyncio.get_running_loop().time
        settings = Settings(tree=Tree(1, 2), owner=os.getuid())
        self.engine = BrokerEngine(settings, 0, str(uuid4()), lambda: str(uuid4()), now=self._clock())
        self.connector = Connector(path, on_accept=self._accept, on_message=self._take, on_gone=self._gone)
        self._services: dict[str, ServiceHost] = {}

    def serve(self, name: str, service: object) -> None:
        """Add a service in Python."""
        self.engine.add_service(name)

        def respond(response: Response) -> None:
            self.perform(self.engine.from_service(name, response, self._clock()))

        self._services[name] = ServiceHost(name, service, respond)

    async def start(self) -> None:
        await self.connector.start()
        self.perform(self.engine.start(self._clock()))

    async def stop(self) -> None:
        for host in self._services.values():
            await host.close()
        await self.connector.stop()

    def perform(self, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case ToClient(client=client, message=message):
                    self.connector.send(client, message)
                case ToService(service=service, request=request):
                    self._services[service].receive(request)
                case CloseClient(client=client, reason=reason):
                    self.connector.close(client, reason)

    def _accept(self, client: str, uid: int, pid: int) -> int:
        errnum = self.engine.authorise(uid)
        if not errnum:
            self.perform(self.engine.accept_client(client, uid, self._clock()))
        return errnum

    def _take(self, client: str, message: AnyMessage) -> None:
        self.perform(self.engine.from_client(client, message, self._clock()))

    def _gone(self, client: str, reason: str) -> None:
        self.perform(self.engine.client_gone(client, self._clock(), reason))


@asynccontextmanager
async def solo(path: str) -> AsyncIterator[Solo]:
    """Run one."""
    broker = Solo(path)
    await broker.start()
    try:
        yield broker
    finally:
        await broker.stop()
