"""Tasks of a plugin: methods that are marked with `task`.

    from specwire.runtime.norfab.worker import Job, task

    class Network:
        def __init__(self, worker):          # or no argument
            worker.set_resources(["r1", "r2"])

        @task
        def ping(self, job: Job, host: str, count: int = 3) -> dict[str, float]:
            \"\"\"Measure how far away a host is.\"\"\"
            for number in range(count):
                job.check()
                job.progress(f"packet {number + 1}")
            return {"average": 0.2}

        @task(name="collect", timeout=30)
        async def gather(self, commands: list[str]) -> list[str]:
            \"\"\"Collect the output of commands.\"\"\"

A method runs in a thread, and a coroutine on an event loop that all coroutines of the worker share. Neither
is the worker's thread, so no task can block its keepalives.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, overload

from specwire.runtime.norfab.worker.arguments import Signature, SignatureError
from specwire.runtime.norfab.worker.handle import Job

_MARK = "__specwire_task__"
LIST_TASKS = "list_tasks"

F = TypeVar("F", bound=Callable[..., Any])


class PluginError(Exception):
    """A plugin cannot be used; `str()` has its name and the reason."""


class _Marked(NamedTuple):
    name: str
    timeout_s: float | None


class Task(NamedTuple):
    """A task of a plugin. `timeout_s` is its own time limit, from its start."""

    name: str
    call: Callable[..., Any]
    signature: Signature
    is_async: bool
    timeout_s: float | None
    description: str

    def describe(self) -> dict[str, Any]:
        """Return its entry in the answer to `list_tasks`."""
        return {
            "name": self.name,
            "description": self.description,
            "inputSchema": self.signature.schema(),
            "async": self.is_async,
            "timeout": self.timeout_s,
        }


@overload
def task(function: F, /) -> F: ...


@overload
def task(*, name: str = "", timeout: float | None = None) -> Callable[[F], F]: ...


def task(
    function: F | None = None, /, *, name: str = "", timeout: float | None = None
) -> F | Callable[[F], F]:
    """Mark a method as a task that clients can call.

    Args:
        name: name for clients; by default that of the method.
        timeout: time limit in seconds, from its start.
    """

    def mark(method: F) -> F:
        if timeout is not None and not timeout > 0:
            raise ValueError(f"the timeout of a task is more than 0 seconds, not {timeout}")
        setattr(method, _MARK, _Marked(name or method.__name__, timeout))
        return method

    return mark if function is None else mark(function)


class TaskTable:
    """Tasks of a plugin by name; `list_tasks` is added unless the plugin has a task of this name.

    Raises:
        PluginError: there is no task, or clients cannot call one of them.
    """

    def __init__(self, plugin: object) -> None:
        self._tasks: dict[str, Task] = {}
        kind = type(plugin)
        for attribute in dir(kind):
            marked = getattr(getattr(kind, attribute, None), _MARK, None)
            if isinstance(marked, _Marked):
                self._add(kind, getattr(plugin, attribute), marked)
        if not self._tasks:
            raise PluginError(f"{kind.__qualname__} has no method that is marked with @task")
        if LIST_TASKS not in self._tasks:
            self._add(kind, self._list_tasks, _Marked(LIST_TASKS, None))

    def _add(self, kind: type, call: Callable[..., Any], marked: _Marked) -> None:
        if marked.name in self._tasks:
            raise PluginError(f"{kind.__qualname__} has two tasks named {marked.name!r}")
        try:
            signature = Signature(call, Job)
        except SignatureError as error:
            raise PluginError(f"task {marked.name!r} of {kind.__qualname__}: {error}") from None
        is_async = inspect.iscoroutinefunction(call)
        about = inspect.getdoc(call) or ""
        self._tasks[marked.name] = Task(marked.name, call, signature, is_async, marked.timeout_s, about)

    def find(self, name: str) -> Task | None:
        """Return the task of this name."""
        return self._tasks.get(name)

    @property
    def names(self) -> list[str]:
        """The names of all tasks."""
        return list(self._tasks)

    @property
    def time_limits(self) -> dict[str, float]:
        """Time limits of the tasks that have one."""
        return {name: found.timeout_s for name, found in self._tasks.items() if found.timeout_s is not None}

    def describe(self) -> list[dict[str, Any]]:
        """Return the answer to `list_tasks`."""
        return [found.describe() for found in self._tasks.values()]

    def _list_tasks(self, name: str | None = None) -> list[dict[str, Any]]:
        """List the tasks of this worker, with what they do and take; with a name, that one."""
        return [found.describe() for found in self._tasks.values() if name in (None, found.name)]
