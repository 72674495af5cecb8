"""The paths that a client subscribes to, and which file names it accepts because of them."""

from __future__ import annotations

from collections.abc import Iterable

from specwire.runtime.filemq.dialect import Habits
from specwire.runtime.filemq.names import covers, fault_in_name, fault_in_path, normalise_path


class Paths(list[str]):
    """Normalised virtual paths, each once, in the order in which they were added."""

    def __init__(self, paths: Iterable[str], habits: Habits) -> None:
        """Take `paths`; raises ValueError where nobody can subscribe to one."""
        super().__init__()
        self._longest_octets, self._server_filters = habits.longest_name_octets, habits.server_filters
        for path in paths:
            self.add(path)

    def add(self, path: str) -> None:
        """Take a further path; raises ValueError where nobody can subscribe to it."""
        normal = normalise_path(path)
        fault = fault_in_path(normal, self._longest_octets)
        if fault is not None:
            raise ValueError(f"{path!r} {fault}")
        if normal not in self:
            self.append(normal)

    def screen(self, name: str) -> str | None:
        """Judge the name of a file that the server sends; see `Incoming`."""
        fault = fault_in_name(name, self._longest_octets)
        if fault is None and not any(covers(path, name) for path in self):
            return "is under no path that was subscribed to" if self._server_filters else ""
        return fault
