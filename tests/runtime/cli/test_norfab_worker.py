"""`specwire norfab worker`: what the user can mend is one sentence. (It runs in tests/integration.)"""

from __future__ import annotations

import os
from pathlib import Path
from typing import get_type_hints

import msgspec
import pytest

from specwire.runtime.cli import norfab_worker_process
from specwire.runtime.cli.main import main
from specwire.runtime.cli.norfab_worker import worker
from specwire.runtime.cli.norfab_worker_options import PROCESS, WorkerOptions
from specwire.runtime.norfab.worker.limits import WorkerSettings

OPTIONS = WorkerOptions(
    service="svc",
    plugin="tests.integration.norfab_plugin:Fleet",
    name="w1",
    brokers=("tcp://127.0.0.1:1",),
    concurrency=1,
    job_timeout=None,
    grace=None,
    drain=None,
    resources=(),
    folder=None,
    durability="process",
    keys=None,
    user=None,
    insecure=True,
    protocol="norfab_ascii",
    capture=None,
    quiet=False,
)


@pytest.fixture
def handed_over(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Return what the command line would give its place to."""
    calls: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda program, arguments: calls.append(arguments))
    return calls


def test_the_command_line_gives_its_place_to_a_small_process(handed_over: list[list[str]]) -> None:
    words = "worker --service svc --plugin m:C --name w1 --broker tcp://a:1 --broker tcp://b:2 --resource r1 --insecure"
    with pytest.raises(SystemExit) as ended:
        main(["norfab", *words.split(), "--concurrency", "3", "--as", "me", "--grace", "2.5"])
    assert ended.value.code == 0
    [(_, *flag, options)] = handed_over
    assert flag == ["-m", PROCESS]
    assert msgspec.json.decode(options, type=WorkerOptions) == WorkerOptions(
        service="svc",
        plugin="m:C",
        name="w1",
        brokers=("tcp://a:1", "tcp://b:2"),
        concurrency=3,
        job_timeout=None,
        grace=2.5,
        drain=None,
        resources=("r1",),
        folder=None,
        durability="process",
        keys=None,
        user="me",
        insecure=True,
        protocol="norfab_ascii",
        capture=None,
        quiet=False,
    )


def test_times_that_are_not_said_are_those_of_the_worker_and_of_the_help() -> None:
    settings = norfab_worker_process.settings_of(OPTIONS)
    assert settings == WorkerSettings()
    said = msgspec.structs.replace(OPTIONS, job_timeout=5.0, grace=0.0, drain=7.0)
    settings = norfab_worker_process.settings_of(said)
    assert (settings.job_s, settings.grace_s, settings.drain_s) == (5.0, 0.0, 7.0)
    defaults = WorkerSettings()
    texts = {
        name: hint.__metadata__[0].help
        for name, hint in get_type_hints(worker, include_extras=True).items()
        if hasattr(hint, "__metadata__")
    }
    assert texts["job_timeout"].endswith(f"by default {defaults.job_s:g}.")
    assert texts["grace"].endswith(f"by default {defaults.grace_s:g}.")
    assert texts["drain"].endswith(f"by default {defaults.drain_s:g}.")


@pytest.mark.parametrize(
    ("change", "status", "sentence"),
    [
        ({"plugin": "no_such_module:Fleet"}, 2, "the plugin no_such_module:Fleet cannot be loaded"),
        ({"plugin": "json:JSONDecoder"}, 2, "JSONDecoder has no method that is marked with @task"),
        ({"brokers": ("nowhere",)}, 2, "'nowhere' is no endpoint"),
        ({"brokers": ("tcp://127.0.0.1:*",)}, 2, "names no port to connect to"),
        ({"insecure": False, "keys": "no/such/folder"}, 2, "no/such/folder/worker.key_secret cannot be read"),
        ({"folder": "/dev/null/store"}, 1, "/dev/null/store cannot be created"),
        ({"name": "all"}, 2, "a worker cannot be named 'all'"),
    ],
)
def test_what_the_user_can_mend_is_one_sentence(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    change: dict[str, object],
    status: int,
    sentence: str,
) -> None:
    given = {"folder": str(tmp_path / "store")} | change
    options = msgspec.structs.replace(OPTIONS, **given)
    assert norfab_worker_process.main([msgspec.json.encode(options).decode()]) == status
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("specwire: ")
    assert sentence in line


@pytest.mark.parametrize(
    ("option", "value", "sentence"),
    [
        ("--name", "any", "a worker cannot be named 'any'"),
        ("--service", "a b", "a service has a name of 1 to 255 printable characters"),
    ],
)
def test_names_that_are_none_are_told_before_anything_is_begun(
    handed_over: list[list[str]],
    capsys: pytest.CaptureFixture[str],
    option: str,
    value: str,
    sentence: str,
) -> None:
    words = {"--service": "svc", "--plugin": "m:C", "--name": "w1"} | {option: value}
    arguments = ["worker", *(word for pair in words.items() for word in pair)]
    with pytest.raises(SystemExit) as ended:
        main(["norfab", *arguments])
    assert ended.value.code == 2
    assert sentence in capsys.readouterr().err
    assert handed_over == []
