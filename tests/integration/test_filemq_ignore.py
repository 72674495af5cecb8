"""Ignore patterns of `specwire filemq serve` and `subscribe`: files stay where they are, on either side."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from tests.integration.filemq_process import kept_endpoint, running
from tests.integration.filemq_scene import digests, run

pytestmark = pytest.mark.peers


async def until_held(inbox: Path, *names: str) -> None:
    while {*digests(inbox)} != {f"/{name}" for name in names}:
        await asyncio.sleep(0.02)


def test_patterns_of_both_sides_and_a_reload(tmp_path: Path) -> None:
    pub, inbox, config = tmp_path / "pub", tmp_path / "in", tmp_path / "config.toml"
    for name in ("a.txt", "b.log", "build/x", "private/key"):
        (pub / name).parent.mkdir(parents=True, exist_ok=True)
        (pub / name).write_text(name)
    config.write_text("[filemq.serve]\nignore = ['build/']\n")

    async def story() -> None:
        with kept_endpoint() as endpoint:
            serve = ("serve", f"{pub}=/", "--endpoint", endpoint, "--config", str(config))
            subscribe = ("subscribe", endpoint, "/", "--inbox", str(inbox))
            async with running(*serve, "--set", f"digests={tmp_path / 'digests'}") as server:
                async with running(*subscribe, "--ignore", "private", "--ignore", "*.x") as client:
                    await until_held(inbox, "a.txt", "b.log")
                    config.write_text("[filemq.serve]\nignore = ['build/', '*.log']\n")
                    os.kill(server.pid, signal.SIGHUP)
                    await until_held(inbox, "a.txt")
                    config.write_text("[filemq.serve]\nignore = ['[z-a]']\n")
                    os.kill(server.pid, signal.SIGHUP)
                    await server.line_with("'[z-a]' is not a pattern")
                    config.write_text("[filemq.serve]\nignore = ['a.txt']\n")
                    os.kill(server.pid, signal.SIGHUP)
                    await until_held(inbox, "b.log", "build/x")
                    await client.stop()
                assert {*digests(inbox)} == {"/b.log", "/build/x"}, "nothing ignored came before the end"
                async with running(*subscribe, "--ignore", "*.log") as client:
                    await until_held(inbox, "b.log", "build/x", "private/key")
                    (pub / "b.log").unlink()
                    (pub / "build/x").unlink()
                    await until_held(inbox, "b.log", "private/key")
                    await client.stop()
                assert (inbox / "b.log").read_text() == "b.log", "the server's deletion is ignored, too"
                await server.stop()

    run(story)
