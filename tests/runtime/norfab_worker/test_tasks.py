"""The SDK: how methods become tasks, and how JSON becomes their arguments."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import enum
import json
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest

from specwire.runtime.norfab.bodies import read_post
from specwire.runtime.norfab.worker.arguments import ArgumentsError, Signature
from specwire.runtime.norfab.worker.handle import Job
from specwire.runtime.norfab.worker.plugin import find_plugin, make_plugin
from specwire.runtime.norfab.worker.sharedfile import SharedFile
from specwire.runtime.norfab.worker.tasks import PluginError, TaskTable, task
from tests.runtime.norfab_worker.laboratory import job

JOB = object()


class Colour(enum.Enum):
    """A choice."""

    RED = "red"


@dataclasses.dataclass
class Point:
    """Two numbers."""

    x: int
    y: int = 0


class Device(msgspec.Struct):
    """A thing with a name."""

    name: str
    ports: list[int] = []


def read(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Return what the function is called with for these arguments of a client."""
    said = read_post(json.dumps({"task": "t", "args": args, "kwargs": kwargs}).encode())
    return Signature(function, Job).read(said.args or [], said.kwargs or {}, JOB)


def call(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Return what the function returns for these arguments of a client."""
    given, named = read(function, *args, **kwargs)
    return function(*given, **named)


def test_arguments_become_what_the_signature_names() -> None:
    def function(
        number: int,
        when: datetime.date,
        colour: Colour,
        point: Point,
        device: Device,
        names: list[str],
        level: Literal["a", "b"] = "a",
    ) -> Any:
        return locals()

    assert call(function, 3, "2026-11-22", "red", {"x": 1}, {"name": "r1"}, names=["x"]) == {
        "number": 3,
        "when": datetime.date(2026, 11, 22),
        "colour": Colour.RED,
        "point": Point(1, 0),
        "device": Device("r1"),
        "names": ["x"],
        "level": "a",
    }


@pytest.mark.parametrize(
    ("args", "kwargs", "reason"),
    [
        ([], {}, "argument 'a' is missing"),
        (["x"], {}, "argument 'a': Expected `int`, got `str`"),
        ([True], {}, "argument 'a': Expected `int`, got `bool`"),
        ([1, 2, 3], {}, "takes 2 arguments in order, and 3 came"),
        ([1], {"a": 1}, "argument 'a' came twice"),
        ([1], {"c": 1}, "has no argument 'c'"),
        ([1], {"b": 11}, "argument 'b': Expected `int` <= 10"),
        ([1], {"job": 1}, "has no argument 'job'"),
        ([1], {"self": 1}, "has no argument 'self'"),
    ],
)
def test_arguments_that_do_not_fit_are_told_by_name(
    args: list[Any], kwargs: dict[str, Any], reason: str
) -> None:
    def function(job: Job, a: int, b: Annotated[int, msgspec.Meta(le=10)] = 2) -> None:
        """Do nothing."""

    with pytest.raises(ArgumentsError) as caught:
        read(function, *args, **kwargs)
    assert str(caught.value) == reason


def test_the_job_is_given_wherever_it_stands() -> None:
    def first(job: Job, a: int) -> Any:
        return job, a

    def last(a: int, *, that: Job) -> Any:
        return that, a

    def untyped(job, a):  # type: ignore[no-untyped-def]
        return job, a

    def rest(job: Job, *values: int, **others: str) -> Any:
        return job, values, others

    def positional(a: int, job: Job, /, b: int = 0) -> Any:
        return job, a, b

    assert call(first, 1) == call(last, 1) == call(untyped, 1) == (JOB, 1)
    assert call(first, a=1) == (JOB, 1)
    assert call(rest, 1, 2, x="y") == (JOB, (1, 2), {"x": "y"})
    assert call(rest) == (JOB, (), {})
    assert call(positional, 1, b=2) == call(positional, 1, 2) == (JOB, 1, 2)


def test_further_arguments_come_after_those_with_defaults() -> None:
    def function(a: int, b: int = 7, *rest: int) -> Any:
        return a, b, rest

    assert call(function, 1) == (1, 7, ())
    assert call(function, 1, 2, 3, 4) == (1, 2, (3, 4))


def test_pydantic_models_are_validated_where_they_are_used() -> None:
    pydantic = pytest.importorskip("pydantic")
    model: Any = pydantic.create_model("Model", name=(str, ...), port=(int, 22))

    def function(one: Any, many: Any) -> Any:
        return one, many

    function.__annotations__ = {"one": model, "many": list[model]}
    one, many = call(function, {"name": "a"}, [{"name": "b", "port": 5}])
    assert (one.name, one.port, many[0].port) == ("a", 22, 5)
    with pytest.raises(ArgumentsError, match=r"argument 'one': (.|\n)*name"):
        read(function, {}, [])
    assert Signature(function, Job).schema()["properties"]["one"]


class Shelf:
    """Stands for a job whose broker shares files."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.asked = folder, list[str]()

    def fetch(self, url: str) -> Path:
        """Return the file, once for each time that it is asked for."""
        self.asked.append(url)
        return self.folder / url.removeprefix("nf://")


class Rollout(msgspec.Struct):
    """What a struct with files looks like."""

    image: SharedFile
    configs: list[SharedFile]


def test_shared_files_are_paths_that_are_fetched_when_they_are_opened(tmp_path: Path) -> None:
    def function(first: SharedFile, rollout: Rollout) -> Any:
        return first, rollout

    for name in ("a", "b", "c"):
        (tmp_path / name).write_text(f"content of {name}")
    shelf = Shelf(tmp_path)
    said = read_post(
        json.dumps(
            {"task": "t", "args": ["nf://a", {"image": "nf://b", "configs": ["nf://c"]}], "kwargs": {}}
        ).encode()
    )
    args, named = Signature(function, Job).read(said.args or [], said.kwargs or {}, shelf)
    first, rollout = function(*args, **named)
    assert shelf.asked == []
    with open(first) as file:
        assert file.read() == "content of a"
    assert Path(rollout.image).read_text() == "content of b"
    assert asyncio.run(rollout.configs[0].fetched()) == tmp_path / "c"
    assert (first.path, first.url) == (tmp_path / "a", "nf://a")
    assert shelf.asked == ["nf://a", "nf://b", "nf://c"]


@pytest.mark.parametrize(
    ("value", "reason"),
    [("nf://../a", r"'\.\.'"), ("/etc/passwd", "does not begin with nf://"), (7, "named by a text")],
)
def test_what_names_no_shared_file_is_refused_before_the_task_begins(value: Any, reason: str) -> None:
    def function(config: SharedFile) -> None:
        """Do nothing."""

    with pytest.raises(ArgumentsError, match=f"argument 'config': .*{reason}"):
        read(function, value)


def test_the_schema_of_a_shared_file_is_that_of_its_url() -> None:
    def function(config: SharedFile) -> None:
        """Do nothing."""

    said = Signature(function, Job).schema()["properties"]["config"]
    assert (said["type"], said["pattern"]) == ("string", "^nf://")


def test_a_type_that_json_cannot_become_is_told_when_it_is_used() -> None:
    def function(socket: Path) -> None:
        """Do nothing."""

    with pytest.raises(ArgumentsError, match="no value of Path can be made of JSON"):
        read(function, "x")


class Plugin:
    """Some tasks."""

    def __init__(self) -> None:
        self.offset = 100

    @task
    def add(self, job: Job, a: int, b: int = 2) -> int:
        """Add two numbers.

        And an offset.
        """
        return a + b + self.offset

    @task(name="other", timeout=5)
    async def gather(self, names: list[str]) -> list[str]:
        """Return the names."""
        return names

    @staticmethod
    @task
    def still(a: int) -> int:
        """Return it."""
        return a

    def helper(self) -> None:
        """Is none."""

    @property
    def costly(self) -> int:
        """Is not asked for."""
        raise RuntimeError


def test_tasks_are_found_and_described() -> None:
    table = TaskTable(Plugin())
    assert sorted(table.names) == ["add", "list_tasks", "other", "still"]
    assert table.time_limits == {"other": 5}
    described = {entry["name"]: entry for entry in table.describe()}
    assert described["add"] == {
        "name": "add",
        "description": "Add two numbers.\n\nAnd an offset.",
        "inputSchema": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer", "default": 2}},
            "required": ["a"],
            "additionalProperties": False,
        },
        "async": False,
        "timeout": None,
    }
    assert described["other"]["async"] is True
    assert json.loads(msgspec.json.encode(table.describe()))
    found = table.find("list_tasks")
    assert found is not None and [entry["name"] for entry in found.call("still")] == ["still"]
    assert table.find("helper") is None


def test_a_marked_method_is_still_a_method() -> None:
    assert Plugin().add(None, 1) == 103  # type: ignore[arg-type]


def test_a_class_without_tasks_is_no_plugin() -> None:
    with pytest.raises(PluginError, match="has no method that is marked"):
        TaskTable(object())


def test_two_tasks_of_one_name_are_told() -> None:
    class Twice:
        @task(name="x")
        def a(self) -> None:
            """Do nothing."""

        @task(name="x")
        def b(self) -> None:
            """Do nothing."""

    with pytest.raises(PluginError, match="two tasks named 'x'"):
        TaskTable(Twice())


def test_types_that_cannot_be_read_are_told() -> None:
    class Bad:
        @task
        def a(self, x: NoSuchType) -> None:  # type: ignore[name-defined]  # noqa: F821
            """Do nothing."""

    with pytest.raises(PluginError, match=r"task 'a' of .*Bad: the types of its parameters cannot be read"):
        TaskTable(Bad())


@pytest.mark.parametrize("timeout", [0, -1, float("nan")])
def test_a_timeout_is_more_than_nothing(timeout: float) -> None:
    with pytest.raises(ValueError, match="more than 0 seconds"):
        task(timeout=timeout)(job)


# --- loading


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder in which Python finds modules."""
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["", "module", ":Class", "module:"])
def test_a_name_that_is_no_plugin(name: str) -> None:
    with pytest.raises(PluginError, match="write module:Class"):
        find_plugin(name)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        ("raise RuntimeError('no')", "RuntimeError: no"),
        ("this is no Python", "SyntaxError"),
        ("class Other: pass", "has no attribute 'Class'"),
        ("Class = 5", "is no class"),
    ],
)
def test_a_module_that_cannot_be_used_is_told(modules: Path, text: str, reason: str) -> None:
    (modules / "norfab_bad_plugin.py").write_text(text)
    sys.modules.pop("norfab_bad_plugin", None)
    with pytest.raises(PluginError, match=reason):
        find_plugin("norfab_bad_plugin:Class")
    sys.modules.pop("norfab_bad_plugin", None)


def test_a_module_that_is_not_there_is_told() -> None:
    with pytest.raises(PluginError, match="ModuleNotFoundError"):
        find_plugin("no_such_module_at_all:Class")


def test_a_plugin_is_made_with_the_worker_where_it_takes_one() -> None:
    class Plain:
        """Takes nothing."""

    class Curious:
        """Takes the worker."""

        def __init__(self, worker: Any) -> None:
            self.worker = worker

    class Broken:
        """Cannot be made."""

        def __init__(self) -> None:
            sys.exit("no licence")

    worker: Any = object()
    assert isinstance(make_plugin(Plain, worker), Plain)
    made = make_plugin(Curious, worker)
    assert isinstance(made, Curious) and made.worker is worker
    assert make_plugin(made, worker) is made
    with pytest.raises(PluginError, match="Broken cannot be made: SystemExit: no licence"):
        make_plugin(Broken, worker)
