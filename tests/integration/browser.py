"""A real browser, told what to do over its debugging protocol: what people see is asked of the thing that shows it."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, ClientWebSocketResponse

CHROMIUM = shutil.which("chromium")
LOOK_S = 0.05

needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on this machine")


class Tab:
    """The only tab."""

    def __init__(self, line: ClientWebSocketResponse) -> None:
        self._line, self._numbers = line, count(1)

    async def open(self, url: str) -> None:
        """Go to a page, and return when it is there."""
        await self._call("Page.navigate", url=url)
        await self.until(f"location.href === {url!r} && document.readyState === 'complete'")

    async def resize(self, width: int, height: int, *, dark: bool = False) -> None:
        """Be a screen of this size, whose owner likes it light or dark."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self._call("Emulation.setEmulatedMedia", features=[scheme])
        await self._call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )

    async def look(self, expression: str) -> Any:
        """Return what a JavaScript expression is, as far as JSON has it."""
        answer = await self._call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    async def until(self, expression: str) -> None:
        """Return when an expression is true; whoever calls gives up after a while."""
        while not await self.look(expression):
            await asyncio.sleep(LOOK_S)

    async def _call(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._numbers)
        await self._line.send_json({"id": number, "method": method, "params": params})
        while True:
            said = await self._line.receive_json()
            if said.get("id") == number:
                assert "error" not in said, said
                result: dict[str, Any] = said["result"]
                return result


@asynccontextmanager
async def browser(profile: Path) -> AsyncIterator[Tab]:
    """Run a browser with one tab; the test is left out where none runs."""
    process = await asyncio.create_subprocess_exec(
        str(CHROMIUM),
        *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
        *("--remote-debugging-port=0", f"--user-data-dir={profile}", "about:blank"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        port = await _port_of(process, profile)
        async with ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
                targets = await answer.json(content_type=None)
            address = next(target["webSocketDebuggerUrl"] for target in targets if target["type"] == "page")
            async with session.ws_connect(address, max_msg_size=0) as line:
                yield Tab(line)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def _port_of(process: asyncio.subprocess.Process, profile: Path) -> int:
    """Return where the browser takes orders, once it has written it down."""
    file = profile / "DevToolsActivePort"
    while True:
        with suppress(OSError):
            if lines := file.read_text().splitlines():
                return int(lines[0])
        if process.returncode is not None:
            pytest.skip("chromium does not run here")
        await asyncio.sleep(LOOK_S)
