"""The two endpoints of what stands between peers, looked at before anything is opened."""

from __future__ import annotations


def require_endpoints(listen: str, to: str) -> None:
    """Raise ValueError, naming the option, where one of the two can be no endpoint of its kind."""
    from specwire.runtime.transport.endpoint import fault_in_endpoint

    for option, endpoint, listening in (("--listen", listen, True), ("--to", to, False)):
        if fault := fault_in_endpoint(endpoint, listening=listening):
            raise ValueError(f"{option}: {endpoint} {fault}")
