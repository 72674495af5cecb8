"""Thousands of changes at once while a client is subscribed: none is missed, by notification alone.

`SPECWIRE_BURST` is the number of changes (1,000); `SPECWIRE_SEED` repeats a run whose seed was printed.
"""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path

from tests.integration.filemq_scene import digests, own_files, run, serving, subscribing

CHANGES = int(os.environ.get("SPECWIRE_BURST", "1000"))
SEED = int(os.environ.get("SPECWIRE_SEED", random.randrange(2**32)))
EQUAL_S = 50.0


def change(folder: Path, rng: random.Random) -> None:
    """Create, write over, rename or delete a file, in folders that come and go with their files."""
    names = [folder / f"folder {n % 9}" / f"{n % 4}" / f"{n}.dat" for n in range(CHANGES // 3)]
    for _ in range(CHANGES):
        name = rng.choice(names)
        match rng.choice(("write", "write", "delete", "rename", "empty", "append")):
            case "delete" if name.exists():
                name.unlink()
                if not any(name.parent.iterdir()):
                    name.parent.rmdir()
            case "rename" if name.exists():
                other = rng.choice(names)
                other.parent.mkdir(parents=True, exist_ok=True)
                name.rename(other)
            case "append" if name.exists():
                with name.open("ab") as file:
                    file.write(rng.randbytes(10))
            case kind:
                name.parent.mkdir(parents=True, exist_ok=True)
                name.write_bytes(b"" if kind == "empty" else rng.randbytes(rng.randrange(2000)))


def test_burst_of_changes(tmp_path: Path) -> None:
    source, inbox = tmp_path / "source", tmp_path / "inbox"
    source.mkdir()
    print(f"SPECWIRE_SEED={SEED}")

    async def story() -> None:
        async with serving(source) as (server, _), subscribing(server.endpoint, inbox) as (client, _):
            (source / "first").write_bytes(b"first")
            await client.until_equal(digests(source), timeout_s=EQUAL_S)
            await asyncio.to_thread(change, source, random.Random(SEED))
            await client.until_equal(digests(source), timeout_s=EQUAL_S)
            assert client.counters.refusals == 0
            assert client.counters.peerings == 1
        assert digests(inbox) == digests(source)
        assert own_files(inbox) == {"journal"}

    run(story)
