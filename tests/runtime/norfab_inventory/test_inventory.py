"""What a worker is told of an inventory: layers by pattern, merged, current, and its own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from specwire.runtime.norfab.inventory import Inventory, InventoryError, InventoryHandler

MAIN = """\
broker:
  endpoint: tcp://127.0.0.1:5555
  shared_key: "5z1:yW}]n?UXhGmz+5CeHN1>:S9k!eCh6JyIhJqO"
workers:
  nornir-*:
    - common.yaml
    - {runner: {retry: 1}, tags: [1, a]}
  "nornir-worker-[12]":
    - pair/two.yaml
  nornir-worker-1:
    - {runner: {retry: 5}, tags: [a, b, true]}
    - common.yaml
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "inventory.yaml").write_text(MAIN)
    (tmp_path / "common.yaml").write_text("service: nornir\nrunner: {plugin: RetryRunner, retry: 3}\n")
    (tmp_path / "pair").mkdir()
    (tmp_path / "pair/two.yaml").write_text("hosts: {sw1: {platform: ios}}\n")
    return tmp_path


def of_worker(folder: Path, name: str) -> Any:
    """Ask once, of a fresh inventory."""
    return Inventory(folder / "inventory.yaml").of_worker(name)


def fault(folder: Path, text: str, name: str = "w1") -> str:
    """Return what is said of an inventory with this text."""
    (folder / "inventory.yaml").write_text(text)
    with pytest.raises(InventoryError) as caught:
        of_worker(folder, name)
    return str(caught.value)


def test_layers_are_laid_over_each_other_in_the_order_of_the_file(folder: Path) -> None:
    """Mappings merge, lists take what they have not, scalars are replaced; a layer counts once, where it stands first."""
    assert of_worker(folder, "nornir-worker-1") == {
        "service": "nornir",
        "runner": {"plugin": "RetryRunner", "retry": 5},
        "tags": [1, "a", "b", True],
        "hosts": {"sw1": {"platform": "ios"}},
    }


def test_patterns_fit_whole_names(folder: Path) -> None:
    """`nornir-*` is no part of another name, letters are as they are, and who is in no pattern is told nothing."""
    assert of_worker(folder, "nornir-worker-3") == {
        "service": "nornir",
        "runner": {"plugin": "RetryRunner", "retry": 1},
        "tags": [1, "a"],
    }
    assert of_worker(folder, "my-nornir-1") is None
    assert of_worker(folder, "Nornir-1") is None


def test_layers_of_one_worker_do_not_leak_into_those_of_another(folder: Path) -> None:
    """The real one merges into the mapping that stands in the file, and the next worker gets that."""
    inventory = Inventory(folder / "inventory.yaml")
    before = inventory.of_worker("nornir-worker-3")
    first = inventory.of_worker("nornir-worker-1")
    assert first is not None
    first["runner"]["retry"] = 99
    first["tags"].append("mine")
    assert inventory.of_worker("nornir-worker-3") == before
    assert inventory.of_worker("nornir-worker-1") == of_worker(folder, "nornir-worker-1")


def test_a_change_of_any_file_is_told_at_the_next_request(folder: Path) -> None:
    """Also one that leaves the size and the times of the file as they were."""
    inventory = Inventory(folder / "inventory.yaml")
    common = folder / "common.yaml"
    for service in ("nornir", "netbox", "tables"):
        common.write_text(f"service: {service}\n")
        os.utime(common, (1_000_000_000, 1_000_000_000))
        told = inventory.of_worker("nornir-1")
        assert told is not None and told["service"] == service
    (folder / "inventory.yaml").write_text("workers: {'*': [{service: other}]}")
    assert inventory.of_worker("nornir-1") == {"service": "other"}


def test_files_that_settled_are_not_read_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their signature is enough, once they are old enough for it to tell of every change."""
    monkeypatch.setattr("specwire.runtime.norfab.inventory.sources.UNSETTLED_NS", -(10**18))
    inventory = Inventory(folder / "inventory.yaml")
    before = inventory.of_worker("nornir-worker-1")
    monkeypatch.setattr("specwire.runtime.norfab.inventory.sources.MAX_OCTETS", 0)  # nothing can be read now
    assert inventory.of_worker("nornir-worker-1") == before
    os.utime(folder / "common.yaml", (1, 1))
    with pytest.raises(InventoryError, match="larger than 0 octets"):
        inventory.of_worker("nornir-worker-1")


def test_a_broken_file_is_told_and_not_answered_from_before(folder: Path) -> None:
    """A stale answer would look like a good one."""
    inventory = Inventory(folder / "inventory.yaml")
    inventory.of_worker("nornir-1")
    (folder / "common.yaml").write_text("service: nornir\nrunner: [1,\n")
    with pytest.raises(InventoryError, match=r"^common\.yaml:3:1: "):
        inventory.of_worker("nornir-1")


def test_links_inside_the_folder_are_followed(folder: Path) -> None:
    """Configuration that is mounted into containers consists of links."""
    (folder / "common.yaml").rename(folder / "pair/real.yaml")
    (folder / "common.yaml").symlink_to("pair/real.yaml")
    assert of_worker(folder, "nornir-3")["service"] == "nornir"


@pytest.mark.parametrize(
    "path", ["../secret.yaml", "link.yaml", "linked/secret.yaml", "/etc/hostname", ".", "pair"]
)
def test_no_layer_leads_out_of_the_folder(folder: Path, path: str) -> None:
    """Whatever way it is written; and the error is where the layer is named."""
    outside = folder.parent / "secret.yaml"
    outside.write_text("secret: 1\n")
    (folder / "link.yaml").symlink_to(outside)
    (folder / "linked").symlink_to(folder.parent)
    told = fault(folder, f"workers:\n  w1:\n    - {{}}\n    - {path}\n")
    assert told.startswith("inventory.yaml:4:7: ") and "secret: 1" not in told


def test_a_missing_layer_is_an_error_where_it_is_named(folder: Path) -> None:
    """It is not left out."""
    told = fault(folder, "workers: {w1: [no/such.yaml]}")
    assert told == "inventory.yaml:1:16: 'no/such.yaml' cannot be read: No such file or directory"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("- a\n", "inventory.yaml:1:1"),
        ("broker: {}\nwrokers: {}\n", "inventory.yaml:2:10"),
        ("workers: [a]\n", "inventory.yaml:1:10"),
        ("workers:\n  w1: common.yaml\n", "inventory.yaml:2:7"),
        ("workers:\n  w1: [7]\n", "inventory.yaml:2:8"),
        ("workers:\n  w1: [pair/list.yaml]\n", "pair/list.yaml:1:1"),
    ],
)
def test_a_wrong_shape_is_told_with_its_place(folder: Path, text: str, place: str) -> None:
    """File, line and column."""
    (folder / "pair/list.yaml").write_text("- 1\n")
    assert fault(folder, text).startswith(place + ": ")


async def ask(path: Path, task: str, args: bytes, kwargs: bytes) -> tuple[int, Any]:
    """Ask a handler once."""
    handler = InventoryHandler(path)
    try:
        status, body = await handler.perform(task, args, kwargs, "")
    finally:
        await handler.close()
    return status, msgspec.json.decode(body)


async def check(path: Path) -> str:
    """Return what a handler finds wrong."""
    handler = InventoryHandler(path)
    try:
        return await handler.check()
    finally:
        await handler.close()


def run(coroutine: Any) -> Any:
    """Run it in a loop of its own."""
    import asyncio

    return asyncio.run(coroutine)


def test_the_service_answers_as_the_deployed_one(folder: Path) -> None:
    """`get_inventory` by keyword, or by place; null for a worker that nothing is said of."""
    path = folder / "inventory.yaml"
    wanted = of_worker(folder, "nornir-worker-1")
    assert run(ask(path, "get_inventory", b"[]", b'{"name":"nornir-worker-1"}')) == (200, wanted)
    assert run(ask(path, "get_inventory", b'["nornir-worker-1"]', b"{}")) == (200, wanted)
    assert run(ask(path, "get_inventory", b"null", b'{"name":"w9"}')) == (200, None)


@pytest.mark.parametrize(
    ("task", "args", "kwargs"),
    [
        ("get_inventory", b"[]", b"{}"),
        ("get_inventory", b"[]", b'{"name":5}'),
        ("get_inventory", b"[[]]", b"{}"),
        ("get_inventory", b"[]", b'{"name":"' + b"w" * 300 + b'"}'),
        ("get_inventory", b"[" * 5000, b"{}"),
        ("drop_inventory", b"[]", b"{}"),
    ],
)
def test_a_bad_question_is_answered_with_400(folder: Path, task: str, args: bytes, kwargs: bytes) -> None:
    """With words, in a body that is JSON."""
    status, body = run(ask(folder / "inventory.yaml", task, args, kwargs))
    assert status == 400 and body["errors"]


def test_an_unusable_inventory_is_answered_with_500_and_the_place(tmp_path: Path) -> None:
    """It is the broker's side that is wrong."""
    (tmp_path / "inventory.yaml").write_text("workers: {w1: [\n")
    status, body = run(ask(tmp_path / "inventory.yaml", "get_inventory", b"[]", b'{"name":"w1"}'))
    assert status == 500 and "inventory.yaml:2:1: " in body["error"]
    status, body = run(ask(tmp_path / "none.yaml", "get_inventory", b"[]", b'{"name":"w1"}'))
    assert status == 500 and "none.yaml" in body["error"]


def test_management_shows_the_sections_without_secrets(folder: Path) -> None:
    """Keys and passwords are masked; the rest is as it stands."""
    status, body = run(ask(folder / "inventory.yaml", "show_broker_inventory", b"[]", b"{}"))
    assert status == 200
    assert body["broker"] == {"endpoint": "tcp://127.0.0.1:5555", "shared_key": "***"}
    assert list(body["workers"]) == ["nornir-*", "nornir-worker-[12]", "nornir-worker-1"]
    assert body["topology"] == {} and body["hooks"] == {}


def test_all_layers_are_checked_at_a_start(folder: Path) -> None:
    """A mistake in the layer of one worker is told before that worker asks."""
    assert run(check(folder / "inventory.yaml")) == ""
    (folder / "pair/two.yaml").write_text("a: {{ nothing }}\n")
    assert (
        run(check(folder / "inventory.yaml"))
        == "pair/two.yaml:1:1: the template fails: 'nothing' is undefined"
    )
