"""An instance whose brokers speak an older edition, or the letter: clients are served as by any, and the wire is that."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import pytest

from specwire.runtime.capture.segments import read_segments
from tests.integration.flux_brokers import play
from tests.integration.flux_processes import start_command

ASK = """
from specwire.runtime.flux import blocking
from specwire.runtime.flux.errors import FluxError
with blocking.open() as handle:
    for rank in range(3):
        assert handle.rpc("broker.ping", {"seq": rank}, nodeid=rank).json()["rank"] == rank
    with handle.events("news") as events:
        assert handle.publish("news.item", {"a": 1}) > 0
        assert next(events).json() == {"a": 1}
    for topic, nodeid in (("nosuch.do", 2), ("attr.nosuch", 1), ("broker.ping", 9)):
        try:
            handle.rpc(topic, {}, nodeid=nodeid)
        except FluxError as error:
            print(error.errnum, end=" ")
"""

pytestmark = pytest.mark.peers


@pytest.mark.parametrize(
    ("options", "package", "errors"),
    [
        (["--protocol=cmb1"], "cmb1", "38 38 113 "),
        (["--protocol=cmb1_json"], "cmb1_json", "38 38 113 "),
        (["--letter"], "flux", "39 39 113 "),
    ],
    ids=["later", "earlier", "letter"],
)
def test_instance_in_another_edition(tmp_path: Path, options: list[str], package: str, errors: str) -> None:
    """Requests, responses, events and errors; everything between the brokers is of that edition, by the letter."""

    async def story() -> None:
        capture = tmp_path / "capture"
        process = await start_command(
            *("--size=3", "--fanout=1", f"--capture={capture}", *options, "--", sys.executable, "-c", ASK)
        )
        out, err = await process.communicate()
        assert (process.returncode, err.decode(), out.decode()) == (0, "", errors)
        module = import_module(f"specwire.generated.{package}")
        rows = read_segments(capture).to_pylist()
        tree = [module.decode(row["frames"], strict=package == "flux") for row in rows]
        assert {type(message).__name__ for message in tree} >= {"Request", "Response", "Event"}
        if package == "cmb1_json":
            assert any(message.json for message in tree if isinstance(message, module.Request))

    play(story())


def test_unknown_protocol_is_one_sentence() -> None:
    """And the letter is of Flux v1 alone."""

    async def story() -> None:
        for options, expected in (
            (["--protocol=zre"], "no broker speaks 'zre'; known: cmb1, cmb1_json, flux"),
            (
                ["--protocol=cmb1", "--letter"],
                "--letter is for flux: cmb1 is spoken by the letter in any case",
            ),
        ):
            process = await start_command(*options, "--", "true")
            out, err = await process.communicate()
            assert process.returncode == 2
            assert (out.decode(), err.decode()) == ("", f"specwire: {expected}\n")

    play(story())
