"""What an inbox holds, as far as its client knows, and a way to wait until that is what is expected."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from specwire.runtime.filemq.names import covers

NAMES_SHOWN = 5


class Holdings:
    """Digest of each file by name. Only differences are looked at again when something changes."""

    def __init__(self) -> None:
        self.digests: dict[str, str] = {}
        self._expectations: list[_Expectation] = []

    def replace(self, path: str, digests: Mapping[str, str]) -> None:
        """Take over a listing of everything under `path`."""
        for name in [name for name in self.digests if covers(path, name) and name not in digests]:
            self.remove(name)
        for name, sha1 in digests.items():
            self.put(name, sha1)

    def put(self, name: str, sha1: str) -> None:
        """A file is there."""
        self.digests[name] = sha1
        self._compare(name)

    def remove(self, name: str) -> None:
        """A file is gone."""
        self.digests.pop(name, None)
        self._compare(name)

    async def until_equal(self, expected: Mapping[str, str], *, timeout_s: float) -> None:
        """Return when the holdings are exactly `expected`; raises TimeoutError that names differences."""
        expectation = _Expectation(dict(expected), self.digests)
        self._expectations.append(expectation)
        try:
            async with asyncio.timeout(timeout_s):
                await expectation.met.wait()
        except TimeoutError:
            names = sorted(expectation.wrong)
            shown = ", ".join(names[:NAMES_SHOWN])
            raise TimeoutError(f"{len(names)} files differ after {timeout_s} s: {shown}") from None
        finally:
            self._expectations.remove(expectation)

    def _compare(self, name: str) -> None:
        for expectation in self._expectations:
            expectation.compare(name, self.digests)


class _Expectation:
    def __init__(self, expected: dict[str, str], digests: Mapping[str, str]) -> None:
        self._expected = expected
        self.wrong = {n for n in expected.keys() | digests.keys() if expected.get(n) != digests.get(n)}
        self.met = asyncio.Event()
        self._tell()

    def compare(self, name: str, digests: Mapping[str, str]) -> None:
        """See whether `name` is as expected now."""
        if self._expected.get(name) == digests.get(name):
            self.wrong.discard(name)
        else:
            self.wrong.add(name)
        self._tell()

    def _tell(self) -> None:
        if self.wrong:
            self.met.clear()
        else:
            self.met.set()
