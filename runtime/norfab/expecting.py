"""Workers that are not here and will be back shortly: those of a broker that has just begun, and those it sent off.

Who was registered when a broker died is in its store. Until they are back, or a silent worker would be lost, a job for
all workers of their service waits: ``all`` would else be the few that were quickest.
"""

from __future__ import annotations


class Expected:
    """Names of workers, each with its service and the time until which it is waited for."""

    __slots__ = ("_by_name", "_by_service")

    def __init__(self) -> None:
        self._by_name: dict[str, tuple[str, float]] = {}
        self._by_service: dict[str, int] = {}

    def expect(self, name: str, service: str, until: float) -> None:
        """Wait for a worker; `until` is not before that of any other."""
        self.take(name)
        self._by_name[name] = service, until
        self._by_service[service] = self._by_service.get(service, 0) + 1

    def awaits(self, service: str) -> bool:
        """Whether a worker of this service is waited for."""
        return service in self._by_service

    def take(self, name: str) -> str | None:
        """Wait for a worker no longer; return its service where it was the last one of it, else None."""
        service, _ = self._by_name.pop(name, ("", 0.0))
        if service not in self._by_service:
            return None
        self._by_service[service] -= 1
        if self._by_service[service]:
            return None
        del self._by_service[service]
        return service

    def overdue(self, now: float) -> list[str]:
        """Return the names of those who should be here by now."""
        late = []
        for name, (_, until) in self._by_name.items():
            if until > now:
                break
            late.append(name)
        return late
