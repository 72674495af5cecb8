"""How pytest-xdist distributes the tests: a worker gets a whole module, or a whole group of `xdist_group`.

The fixtures of a module are then made once, not once in each worker. Scheduling some hundred units also takes xdist
20 seconds of processor time less than scheduling twelve thousand tests.
"""

from __future__ import annotations

from xdist.scheduler import LoadGroupScheduling


class ModuleScheduling(LoadGroupScheduling):  # type: ignore[misc]  # xdist has no types
    """Schedules modules; tests with the mark `xdist_group` are scheduled by group."""

    def _split_scope(self, nodeid: str) -> str:
        group: str = super()._split_scope(nodeid)
        return group if group != nodeid else nodeid.partition("::")[0]
