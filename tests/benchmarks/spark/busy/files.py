"""A FILEMQ server and its clients."""

from __future__ import annotations

import numpy as np

from specwire.generated import filemq
from tests.benchmarks.spark.busy.forms import FIRST, SECOND
from tests.benchmarks.spark.busy.scene import Scene

CHUNK = 256


def play_server(number: int, messages: int, span_us: int) -> Scene:
    """Clients that take files against credit; every fifth grants it too late."""
    keys = [f"00{client:02x}77f4a1b2c3d4" for client in range(40)]
    talks = [(f"b9bfda76-{key}", key) for key in keys]
    scene = Scene(talks, "CS", np.random.default_rng(number), span_us)
    for client in range(len(talks)):
        _take_files(scene, client, messages // len(talks))
    return scene


def _take_files(scene: Scene, client: int, messages: int) -> None:
    make, chance = scene.forms.number, scene.chance
    begin = client * scene.span_us // 200
    greeting = (
        ("C", filemq.Ohai()), ("S", filemq.OhaiOk()),
        ("C", filemq.Icanhaz("/pub", (), ())), ("S", filemq.IcanhazOk()), ("C", filemq.Nom(64 * CHUNK)),
    )  # fmt: skip
    for step, (sender, message) in enumerate(greeting):
        scene.say(begin + step * 400, client, sender, make(message))
    sizes = (chance.pareto(0.9, max(1, messages // 60)) * 12 + 1).astype(np.int64).clip(1, messages // 3)
    sizes = sizes[np.cumsum(sizes + 1) < messages * 0.95]
    chunks = int(sizes.sum() + len(sizes))
    file = np.repeat(np.arange(len(sizes)), sizes + 1)
    place = np.arange(chunks) - np.repeat(np.cumsum(sizes + 1) - sizes - 1, sizes + 1)
    last = place == sizes[file]
    gap_us = (scene.span_us - begin) / max(1, chunks) * np.exp(chance.normal(0, 0.4, chunks))
    at = begin + 5000 + np.cumsum(gap_us * 0.97).astype(np.int64)
    names = [f"/pub/run-{client:02}/part-{n:04}.h5" for n in range(200)]
    content = chance.bytes(CHUNK)
    whole = [make(_chunk(name, content)) for name in names]
    ends = [make(_chunk(name, b"")) for name in names]
    forms = np.where(last, np.array(ends)[file % len(names)], np.array(whole)[file % len(names)])
    scene.say(at, client, "S", forms, np.arange(chunks) + 1, place * CHUNK)
    ahead = 1 if client % 5 else -1  # credit before, or after, what was granted is used up
    noms = np.arange(32 if ahead > 0 else 64, chunks, 64)
    scene.say(at[noms] + (0 if ahead > 0 else 900), client, "C", make(filemq.Nom(64 * CHUNK)))
    beats = np.arange(int(at[0]) if chunks else begin, scene.span_us, 4_000_000)
    scene.say(beats, client, "C", make(filemq.Hugz()))
    scene.say(beats + 350, client, "S", make(filemq.HugzOk()))
    if client % 8 == 0:
        scene.say(scene.span_us // 2, client, "C", make([bytes.fromhex("aaa307000001")]))
        scene.say(scene.span_us // 3, client, "S", make(filemq.OhaiOk()))


def _chunk(name: str, content: bytes) -> filemq.Cheezburger:
    return filemq.Cheezburger(FIRST, filemq.Operation.CREATE, name, SECOND, (), content)
