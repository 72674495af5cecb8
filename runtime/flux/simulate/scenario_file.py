"""Read a scenario from TOML; what cannot be meant is told with the file and the key."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from random import Random

import msgspec

from specwire.runtime.flux.services import BUILT_IN
from specwire.runtime.flux.simulate.ranks import choose_ranks
from specwire.runtime.flux.simulate.scenario import DIRECTIONS, Scenario
from specwire.runtime.flux.topology import Tree
from specwire.runtime.toml_file import TomlFileError, read_toml

_PLACE = re.compile(r"(?P<text>.*) - at `\$\.?(?P<key>.*)`", re.DOTALL)


class ScenarioError(ValueError):
    """A scenario cannot be used; `str()` says where, what, and what to do."""


def load_scenario(file: Path, tree: Tree) -> Scenario:
    """Return what `file` says of a simulation of `tree`; raises ScenarioError."""
    scenario = _convert(file, _read(file))
    for key, text in _ranks_of(scenario):
        try:
            choose_ranks(text, tree, Random(0))
        except ValueError as error:
            raise ScenarioError(f"{file}: {key}: {error}") from None
    for number, publication in enumerate(scenario.event):
        if publication.rank >= tree.size:
            wanted = f"rank {publication.rank} is not in a tree of the ranks 0 to {tree.size - 1}"
            raise ScenarioError(f"{file}: event[{number}].rank: {wanted}")
    names: set[str] = set()
    for number, service in enumerate(scenario.service):
        if fault := _fault_of(service.name, names):
            raise ScenarioError(f"{file}: service[{number}].name: {fault}")
        names.add(service.name)
    return scenario


def _fault_of(name: str, names: set[str]) -> str:
    """Return why there can be no service of that name besides those in `names`; empty where there can."""
    if "." in name:
        return "a service is named by one word"
    if name in BUILT_IN:
        return f"{name!r} is built in"
    return f"there is a service {name!r} already" if name in names else ""


def _read(file: Path) -> dict[str, object]:
    try:
        return read_toml(file)
    except TomlFileError as error:
        raise ScenarioError(f"{file} {error}") from None


def _convert(file: Path, tables: dict[str, object]) -> Scenario:
    try:
        return msgspec.convert(tables, Scenario)
    except msgspec.ValidationError as error:
        found = _PLACE.fullmatch(str(error))
        if found is None:
            raise ScenarioError(f"{file}: {error}") from None
        raise ScenarioError(f"{file}: {found['key']}: {found['text']}") from None


def _ranks_of(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """Yield each text that names ranks, with its key."""
    for number, service in enumerate(scenario.service):
        yield f"service[{number}].ranks", service.ranks
    for number, load in enumerate(scenario.rpc):
        yield f"rpc[{number}].clients", load.clients
        if load.to not in DIRECTIONS:
            yield f"rpc[{number}].to", load.to
    for number, publication in enumerate(scenario.event):
        if publication.subscribers is not None:
            yield f"event[{number}].subscribers", publication.subscribers
    for name in ("kill", "hang", "partition"):
        for number, fault in enumerate(getattr(scenario, name)):
            yield f"{name}[{number}].ranks", fault.ranks
