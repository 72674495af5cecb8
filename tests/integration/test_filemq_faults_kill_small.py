"""`kill -9` of a subscriber among many small files that come, change and go: nothing is half done in the end.

A file takes several steps into the inbox and out of it, and a kill may come between any two. What would show:
a deletion that is refused because the file seems not to be the server's, a file of an old version, a rest.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

from tests.integration.filemq_process import running, start
from tests.integration.filemq_scene import digests, own_files, run, serving

KILLS = 2 * int(os.environ.get("SPECWIRE_SOAK_ROUNDS", "2"))
SEED = int(os.environ.get("SPECWIRE_SEED", random.randrange(2**32)))
FILES = 400
CHANGES = 300


def change(source: Path, rng: random.Random) -> None:
    """Write or delete files, all among the same names."""
    for _ in range(CHANGES):
        path = source / f"folder {rng.randrange(5)}" / f"{rng.randrange(FILES // 5)}.dat"
        if rng.random() < 0.3:
            path.unlink(missing_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(rng.randbytes(rng.randrange(5000)))


def test_killed_among_small_files(tmp_path: Path) -> None:
    source, inbox = tmp_path / "source", tmp_path / "inbox"
    source.mkdir()
    rng = random.Random(SEED)
    print(f"SPECWIRE_SEED={SEED}")

    async def story() -> None:
        async with serving(source) as (server, _):
            subscribe = ("subscribe", server.endpoint, "/", "--inbox", str(inbox))
            for _ in range(KILLS):
                change(source, rng)
                await server.rescan()
                client = await start(*subscribe)
                try:
                    await client.until_lines("/folder ", rng.randrange(1, CHANGES // 3))
                    await client.kill()
                finally:
                    await client.end()
            change(source, rng)
            (source / "last").write_bytes(b"last")
            await server.rescan()
            async with running(*subscribe) as client:
                (source / "very last").write_bytes(b"very last")
                await client.line_with("received /last")
                await client.line_with("received /very last")
                await client.stop()
                assert not [line for line in client.lines if "refused" in line]
        assert digests(inbox) == digests(source)
        assert own_files(inbox) == {"journal"}

    run(story)
