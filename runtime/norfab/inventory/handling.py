"""``sid.service.broker``, and the inventory in the broker's management."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

from specwire.runtime.norfab.inventory.faults import InventoryError
from specwire.runtime.norfab.inventory.layers import Inventory

MAX_NAME = 255


class _NamedWorker(msgspec.Struct, frozen=True):
    name: str = ""


_NAMED = msgspec.json.Decoder(_NamedWorker)
_WORDS = msgspec.json.Decoder(list[Any])


class InventoryHandler:
    """Answers for one inventory; files are read in a thread of its own, one request after the other.

    Args:
        path: the inventory's file. It need not be there yet: that is an answer, too.
    """

    def __init__(self, path: Path) -> None:
        self._inventory = Inventory(path)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="norfab-inventory")

    async def perform(self, task: str, args: bytes, kwargs: bytes, user: str) -> tuple[int, bytes]:
        """Return status and body of the answer.

        `get_inventory` (`name`) gives what a worker is to know, null where nothing is said of it;
        `show_broker_inventory` the sections, secrets masked.
        """
        if task not in ("get_inventory", "show_broker_inventory"):
            return 400, _say(f"Unsupported task '{task[:80]}'")
        try:
            name = _name_in(args, kwargs) if task == "get_inventory" else ""
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return 400, _say('get_inventory takes the name of a worker: {"name": …}')
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._answer, task, name)

    async def check(self) -> str:
        """Return what is wrong with the inventory or any of its layers, with its place; empty where nothing is."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._fault)

    async def close(self) -> None:
        """Wait for what is being read, and end the thread."""
        await asyncio.to_thread(self._thread.shutdown, cancel_futures=True)

    def _fault(self) -> str:
        try:
            self._inventory.check()
        except InventoryError as error:
            return str(error)
        return ""

    def _answer(self, task: str, name: str) -> tuple[int, bytes]:
        try:
            if task == "get_inventory":
                return 200, msgspec.json.encode(self._inventory.of_worker(name))
            return 200, msgspec.json.encode(self._inventory.masked())
        except InventoryError as error:
            return 500, _say(f"the inventory cannot be used: {error}")


def _name_in(args: bytes, kwargs: bytes) -> str:
    """Return the worker's name from the arguments; raises msgspec.DecodeError."""
    name = _NAMED.decode(kwargs).name if kwargs not in (b"", b"null") else ""
    words = _WORDS.decode(args) if not name and args not in (b"", b"null") else []
    if words and isinstance(words[0], str):
        name = words[0]
    if not name or len(name) > MAX_NAME:
        raise msgspec.ValidationError("no name")
    return name


def _say(why: str) -> bytes:
    return msgspec.json.encode({"status": "FAILED", "error": why, "errors": [why]})
