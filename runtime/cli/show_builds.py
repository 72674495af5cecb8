"""`specwire show builds`: which packages run in C, and why the others do not."""

from __future__ import annotations

from importlib.util import find_spec

from specwire.generated.builds import why_pure
from specwire.runtime.cli.console import output, print_json
from specwire.runtime.packages import load_package, package_names


def show_builds(protocol: str | None, *, json: bool) -> None:
    """Print a line for each package and, if ZeroMQ is installed, for the sockets; or for one package.

    With `json` it is the reason for Python, an empty text where it is C.
    """
    names = package_names() if protocol is None else [protocol]
    reasons = {name: why_pure(load_package(name).__name__) for name in names}
    if protocol is None and find_spec("zmq") is not None:
        from specwire.runtime.transport.messages import PACKAGE

        reasons["transport"] = why_pure(PACKAGE)
    if json:
        print_json(reasons)
        return
    width = max(map(len, reasons))
    for name, reason in reasons.items():
        output().print(
            f"{name:{width}}  {f'Python: {reason}' if reason else 'C'}", markup=False, soft_wrap=True
        )
