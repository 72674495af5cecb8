"""`specwire flux getattr`, `setattr` and `lsattr`: attributes of a broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from specwire.runtime.cli.console import fail, print_json
from specwire.runtime.cli.flux_client import (
    JsonOption,
    TimeoutOption,
    UriOption,
    connected,
    give_up,
    patience,
    print_line,
    run,
)

if TYPE_CHECKING:
    from specwire.runtime.flux.errors import FluxError

ANSWER_S = 10.0
NAME_COLUMNS = 40
"""Width of the first column, as in `flux lsattr`."""

NO_VALUE = "-"
"""Printed for an attribute without a value, as by `flux lsattr -v`: `parent-uri` may have none."""

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Such as rank, size, hostlist.")]


def get(
    name: NameArgument, uri: UriOption = None, timeout: TimeoutOption = None, as_json: JsonOption = False
) -> None:
    """Print an attribute of the broker."""

    async def story() -> None:
        from specwire.runtime.flux.errors import FluxError
        from specwire.runtime.flux.inquiry import get_attribute
        from specwire.runtime.log.text import show

        async with connected(uri) as handle:
            try:
                told = await get_attribute(handle, name, patience(timeout, ANSWER_S))
            except FluxError as error:
                explain(error, name)
        if as_json:
            print_json({"name": name, "value": told.value, "flags": told.flags})
        else:
            print_line(show(told.value))

    run(story())


def set_(
    name: NameArgument,
    value: Annotated[str | None, typer.Argument(metavar="VALUE", show_default=False)] = None,
    expunge: Annotated[bool, typer.Option("--expunge", "-e", help="Take the attribute back.")] = False,
    uri: UriOption = None,
    timeout: TimeoutOption = None,
) -> None:
    """Set an attribute of the broker that is not the broker's own."""
    if expunge == (value is not None):
        fail("either a VALUE is wanted, or --expunge")

    async def story() -> None:
        from specwire.runtime.flux.errors import FluxError

        topic = "attr.set" if value is not None else "attr.rm"
        payload = {"name": name} if value is None else {"name": name, "value": value}
        async with connected(uri) as handle:
            try:
                await handle.rpc(topic, payload, timeout_s=patience(timeout, ANSWER_S))
            except FluxError as error:
                explain(error, name)

    run(story())


def list_(
    values: Annotated[bool, typer.Option("--values", "-v", help="Print the values, too.")] = False,
    uri: UriOption = None,
    timeout: TimeoutOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the attributes of the broker by name."""

    async def story() -> None:
        from specwire.runtime.flux.inquiry import AttributeNames, find_attribute
        from specwire.runtime.log.text import show

        wait_s = patience(timeout, ANSWER_S)
        async with connected(uri) as handle:
            names = sorted((await handle.rpc("attr.list", timeout_s=wait_s)).read(AttributeNames).names)
            if not values and not as_json:
                for name in names:
                    print_line(show(name))
                return
            told = {name: await find_attribute(handle, name, wait_s) for name in names}
        if as_json:
            print_json(told)
            return
        for name, value in told.items():
            print_line(f"{show(name):<{NAME_COLUMNS}}{NO_VALUE if value is None else show(value)}")

    run(story())


def explain(error: FluxError, name: str) -> NoReturn:
    """End the command: an attribute is not there, or may not be changed."""
    from specwire.runtime.flux.errors import ENOENT

    give_up(error, name, step="`specwire flux lsattr` lists what there is" if error.errnum == ENOENT else "")
