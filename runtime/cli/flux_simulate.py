"""`specwire flux simulate`: an instance of any size in this process, under a virtual clock."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from specwire.runtime.cli.console import fail, messages, print_error

if TYPE_CHECKING:
    from specwire.runtime.flux.simulate import Report, Scenario
    from specwire.runtime.flux.topology import Tree


def simulate(
    size: Annotated[
        int, typer.Option("--size", "-s", min=1, max=10_000_000, help="Number of brokers.")
    ] = 1000,
    fanout: Annotated[
        int, typer.Option("--fanout", "-k", min=0, help="Children of each broker; 0: all are below rank 0.")
    ] = 2,
    scenario: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="What happens, in TOML (see docs/explanation/flux-scale.md); without, the tree starts and its pulse beats.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Of all that is drawn, instead of the scenario's.", show_default=False)
    ] = None,
    duration: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", help="Of virtual time, instead of the scenario's.", show_default=False
        ),
    ] = None,
    wire: Annotated[
        bool, typer.Option("--wire", help="Encode and decode every message between brokers.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON, which is the same in every run.")
    ] = False,
) -> None:
    """Run the real broker engines with a virtual clock, and a model of what is between them.

    Reports how long the start of the tree, RPCs, events and the recovery from faults take, and the messages that
    brokers have to deal with. How long this itself took goes to standard error.
    """
    from specwire.runtime.flux.config import Settings
    from specwire.runtime.flux.simulate import simulate as run
    from specwire.runtime.flux.topology import Tree

    tree = Tree(size, fanout)
    wanted = _read(scenario, tree, seed, duration)
    begun = time.perf_counter()
    status = messages().status("simulating")
    with status:
        report = run(
            Settings(tree=tree),
            wanted,
            through_wire=wire,
            on_progress=lambda now: status.update(f"simulating: {now:g} of {wanted.duration_s:g} s"),
        )
    _print(report, as_json=as_json)
    took_s, octets = time.perf_counter() - begun, _peak_octets()
    rate = report.messages / took_s
    print_error(
        f"simulated in {took_s:.1f} s, {octets / 1e6:,.0f} MB at most, {rate:,.0f} messages in a second"
    )


def _read(file: Path | None, tree: Tree, seed: int | None, duration_s: float | None) -> Scenario:
    """Return the scenario with what the options change."""
    import msgspec

    from specwire.runtime.flux.simulate import Scenario, ScenarioError, load_scenario

    try:
        scenario = Scenario() if file is None else load_scenario(file, tree)
    except ScenarioError as error:
        fail(str(error))
    if duration_s is not None and not 0 < duration_s < float("inf"):
        fail(f"--duration {duration_s:g}: more than 0 seconds are wanted")
    given = {"seed": seed, "duration_s": duration_s}
    return msgspec.structs.replace(
        scenario, **{name: value for name, value in given.items() if value is not None}
    )


def _print(report: Report, *, as_json: bool) -> None:
    if as_json:
        import msgspec

        sys.stdout.write(msgspec.json.format(msgspec.json.encode(report)).decode() + "\n")
    else:
        from specwire.runtime.cli.flux_simulate_tables import print_report

        print_report(report)


def _peak_octets() -> int:
    """Return the most memory that this process had."""
    import resource  # Not on Windows.

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
