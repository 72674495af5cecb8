"""Scenario files: what they say, and what is told about one that cannot be meant."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from specwire.runtime.flux.simulate import ScenarioError, load_scenario
from specwire.runtime.flux.simulate.durations import Lognormal, Uniform, drawing
from specwire.runtime.flux.simulate.ranks import choose_ranks
from specwire.runtime.flux.simulate.scenario import Kill, Links, Load, Scenario
from specwire.runtime.flux.topology import Tree
from tests.house.repository import ROOT

WAYS = "all, leaves, level N, N%, N random, or numbers such as 0,7,16-31"
TREE = Tree(20, 3)  # rank 0; 1-3; 4-12; 13-19 below 4-6


def write(folder: Path, text: str) -> Path:
    """Write a scenario file."""
    file = folder / "story.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_file_is_read(tmp_path: Path) -> None:
    """Tables and arrays of tables; what is not said has its default."""
    text = """
        duration_s = 5
        links = { latency_s = { kind = "uniform", low_s = 0.1, high_s = 0.2 } }
        [[rpc]]
        clients = "leaves"
        to = "random"
        [[kill]]
        at_s = 1
        ranks = "5%"
    """
    assert load_scenario(write(tmp_path, text), TREE) == Scenario(
        duration_s=5.0,
        links=Links(latency_s=Uniform(0.1, 0.2)),
        rpc=(Load(clients="leaves", to="random"),),
        kill=(Kill(at_s=1.0, ranks="5%"),),
    )


@pytest.mark.parametrize("file", sorted((ROOT / "docs/scenarios").glob("*.toml")), ids=lambda file: file.name)
def test_published_scenarios_are_good(file: Path) -> None:
    """Those that the documents name can be used with the largest tree."""
    assert load_scenario(file, Tree(100_000, 32)).title


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("duration_s = ", "is not TOML: Invalid value (at end of document)"),
        ("duration_s = 0", ": duration_s: Expected `float` > 0.0"),
        ("duration = 5", ": Object contains unknown field `duration`"),
        ("links = { loss = 1.0 }", ": links.loss: Expected `float` < 1.0"),
        ("links = { latency_s = -1.0 }", ": links.latency_s: Expected `float` >= 0.0"),
        ('links = { latency_s = "fast" }', ": links.latency_s: Expected `float | object`, got `str`"),
        ('links.latency_s = { kind = "normal" }', ": links.latency_s.kind: Invalid value 'normal'"),
        (
            'links.latency_s = { kind = "uniform", low_s = 2.0, high_s = 1.0 }',
            ": links.latency_s: high_s = 1 is below low_s = 2",
        ),
        ('[[kill]]\nranks = "1"', ": kill[0]: Object missing required field `at_s`"),
        (
            '[[kill]]\nat_s = 1\nranks = "20"',
            ": kill[0].ranks: 20 is not in a tree of the ranks 0 to 19",
        ),
        (
            '[[kill]]\nat_s = 1\nranks = "1"\n[[kill]]\nat_s = 1\nranks = "some"',
            f": kill[1].ranks: 'some' names no ranks; write {WAYS}",
        ),
        ('[[kill]]\nat_s = 1\nranks = "1"\nhow = "gently"', ": kill[0].how: Invalid enum value 'gently'"),
        (
            '[[hang]]\nat_s = 1\nfor_s = 1\nranks = "level 4"',
            ": hang[0].ranks: there is no level 4: the deepest is 3",
        ),
        (
            '[[partition]]\nat_s = 1\nfor_s = 1\nranks = "20 random"',
            ": partition[0].ranks: there are only 19 ranks besides 0",
        ),
        ('[[rpc]]\nclients = "101%"', ": rpc[0].clients: '101%' is more than all"),
        ('[[rpc]]\nclients = "all"\nto = "9-7"', ": rpc[0].to: 9-7 is not in a tree of the ranks 0 to 19"),
        ("[[event]]\nat_s = 1\nrank = 20", ": event[0].rank: rank 20 is not in a tree of the ranks 0 to 19"),
        ('[[event]]\nat_s = 1\nsubscribers = ""', ": event[0].subscribers: Expected `str` of length >= 1"),
        ('[[service]]\nname = "kvs"', ": service[0].name: 'kvs' is built in"),
        ('[[service]]\nname = "a.b"', ": service[0].name: a service is named by one word"),
        (
            '[[service]]\nname = "a"\n[[service]]\nname = "a"',
            ": service[1].name: there is a service 'a' already",
        ),
    ],
)
def test_fault_is_told_with_file_and_key(tmp_path: Path, text: str, wanted: str) -> None:
    """One sentence, which begins with the file."""
    file = write(tmp_path, text)
    with pytest.raises(ScenarioError) as fault:
        load_scenario(file, TREE)
    assert str(fault.value) == f"{file}{wanted if wanted[0] == ':' else ' ' + wanted}"


def test_file_that_is_no_text_is_told(tmp_path: Path) -> None:
    """As is one that is not there."""
    with pytest.raises(ScenarioError, match=r"none\.toml cannot be read: No such file"):
        load_scenario(tmp_path / "none.toml", TREE)
    (tmp_path / "odd.toml").write_bytes(b"\xff")
    with pytest.raises(ScenarioError, match=r"odd\.toml is not UTF-8"):
        load_scenario(tmp_path / "odd.toml", TREE)


@pytest.mark.parametrize(
    ("text", "ranks"),
    [
        ("all", [*range(20)]),
        ("leaves", [*range(7, 20)]),
        ("level 0", [0]),
        ("level 2", [*range(4, 13)]),
        ("level 3", [*range(13, 20)]),
        ("0, 7,3-5", [0, 3, 4, 5, 7]),
        ("100%", [*range(1, 20)]),
        ("19 random", [*range(1, 20)]),
    ],
)
def test_ranks_are_named(text: str, ranks: list[int]) -> None:
    """By their place or their number; those at random leave rank 0 alone."""
    assert [*choose_ranks(text, TREE, Random(0))] == ranks


@pytest.mark.parametrize(("size", "fanout"), [(1, 2), (2, 2), (2, 0), (7, 0), (5, 1), (40, 3), (41, 3)])
def test_leaves_have_no_children(size: int, fanout: int) -> None:
    """In a tree of any shape."""
    tree = Tree(size, fanout)
    assert [*choose_ranks("leaves", tree, Random(0))] == [r for r in range(size) if not tree.children(r)]


def test_share_is_drawn() -> None:
    """One percent of few is one; each rank but 0 has its chance."""
    drawn = Counter(rank for seed in range(500) for rank in choose_ranks("1%", TREE, Random(seed)))
    assert drawn.total() == 500
    assert set(drawn) == set(range(1, 20))


def test_durations_are_spread_as_they_say() -> None:
    """Uniform ones between two bounds, half of the lognormal ones below the median."""
    random = Random(0)
    uniform = [drawing(Uniform(1.0, 3.0), random)() for _ in range(1000)]
    assert 1.0 <= min(uniform) < 1.1
    assert 2.9 < max(uniform) <= 3.0
    draw = drawing(Lognormal(0.5, 1.0), random)
    assert 450 < sum(draw() < 0.5 for _ in range(1000)) < 550
    assert drawing(0.25, random)() == 0.25
