"""`specwire norfab keys`: make the keys of a peer, and put it into the broker's table."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from specwire.runtime.cli.console import fail, output, print_json
from specwire.runtime.cli.norfab_options import KEYS, FolderOption

if TYPE_CHECKING:
    from specwire.runtime.norfab.security.table import Peer

OPTION_HELP = "May be repeated; * and ? stand for what they do in names of files."


def keys(
    name: Annotated[
        str | None,
        typer.Argument(help="The peer. Without it, what a new broker needs is made.", show_default=False),
    ] = None,
    folder: FolderOption = None,
    role: Annotated[
        list[str] | None, typer.Option(help="client, worker or admin. May be repeated.", show_default=False)
    ] = None,
    call: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SERVICE[:TASK]", help=f"What a client may call. {OPTION_HELP}", show_default=False
        ),
    ] = None,
    serve: Annotated[
        list[str] | None,
        typer.Option(metavar="SERVICE", help=f"What a worker may offer. {OPTION_HELP}", show_default=False),
    ] = None,
    names: Annotated[
        list[str] | None,
        typer.Option(
            "--come-in-as",
            metavar="NAME",
            help=f"Under which names it may come in, where not NAME and NAME-*. {OPTION_HELP}",
            show_default=False,
        ),
    ] = None,
    see: Annotated[
        list[str] | None,
        typer.Option(
            metavar="USER",
            help=f"Whose jobs a client may see besides its own. {OPTION_HELP}",
            show_default=False,
        ),
    ] = None,
    manage: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TASK", help=f"Which tasks of management it may use. {OPTION_HELP}", show_default=False
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print files and public keys as JSON.")] = False,
) -> None:
    """Make a pair of CURVE keys for a peer, and say in the broker's table who it is and what it may do."""
    from specwire.runtime.norfab.security.keyring import Keyring, default_folder
    from specwire.runtime.norfab.security.tablefile import AccessError
    from specwire.runtime.transport.keys import KeyFileError

    ring = Keyring((folder or default_folder(os.environ)) / KEYS)
    try:
        made = ring.prepare()
        if name is not None:
            ring.add(_describe(name, role, call=call, serve=serve, names=names, see=see, manage=manage))
            made.append(name)
    except (KeyFileError, AccessError) as error:
        fail(str(error))
    _show(ring.folder, made, as_json=as_json)


def _describe(name: str, role: list[str] | None, **rights: list[str] | None) -> Peer:
    import msgspec

    from specwire.runtime.norfab.security.table import ROLES, Peer
    from specwire.runtime.norfab.security.tablefile import AccessError

    for given in role or ():
        if given not in ROLES:
            raise AccessError(f"there is no role {given!r}: it is one of {', '.join(ROLES)}")
    given_rights = {field: tuple(values) for field, values in rights.items() if values}
    return msgspec.convert({"name": name, "key": "", "roles": tuple(role or ()), **given_rights}, Peer)


def _show(folder: Path, made: list[str], *, as_json: bool) -> None:
    from specwire.runtime.transport.keys import PUBLIC_SUFFIX, SECRET_SUFFIX, load_public_key

    rows = [
        {
            "name": name,
            "public": str(folder / (name + PUBLIC_SUFFIX)),
            "secret": str(folder / (name + SECRET_SUFFIX)),
            "key": load_public_key(folder / (name + PUBLIC_SUFFIX)),
        }
        for name in made
    ]
    if as_json:
        print_json(rows)
        return
    for row in rows:
        output().print(f"{row['public']}  {row['key']}", markup=False, soft_wrap=True)
        output().print(f"{row['secret']}  (for its owner alone)", markup=False, soft_wrap=True)
    if not rows:
        output().print(f"{folder} has everything that a broker needs", markup=False, soft_wrap=True)
