"""A process that has no descriptors left: it goes on with what it has, and with everything when there are some."""

from __future__ import annotations

import resource
from pathlib import Path

from tests.integration.filemq_process import kept_endpoint, running
from tests.integration.filemq_scene import digests, run, serving


def test_a_subscriber_without_descriptors_connects_when_it_has_some(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source/a").write_bytes(b"a")

    async def story() -> None:
        with kept_endpoint() as endpoint:
            inbox = tmp_path / "inbox"
            async with running("subscribe", endpoint, "/", "--inbox", str(inbox)) as client:
                async with serving(tmp_path / "source", endpoint=endpoint):
                    await client.line_with("received /a")
                    soft, hard = resource.prlimit(client.pid, resource.RLIMIT_NOFILE)
                    resource.prlimit(client.pid, resource.RLIMIT_NOFILE, (3, hard))
                await client.line_with("no socket can be made: Too many open files")
                (tmp_path / "source/b").write_bytes(b"b")
                async with serving(tmp_path / "source", endpoint=endpoint):
                    await client.line_with("no socket can be made: Too many open files, try 2")
                    resource.prlimit(client.pid, resource.RLIMIT_NOFILE, (soft, hard))
                    await client.line_with("received /b")
                await client.stop()
            assert digests(inbox) == digests(tmp_path / "source")

    run(story)
