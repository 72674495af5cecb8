"""`specwire keys`: make the CURVE keys of a peer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from specwire.runtime.cli.console import fail, output, print_json


def command(
    names: Annotated[
        list[str], typer.Argument(metavar="NAME", help="One pair of keys for each.", show_default=False)
    ],
    folder: Annotated[
        Path, typer.Option("--out", "--to", help="Folder that the files are written to.")
    ] = Path("."),
    json: Annotated[bool, typer.Option("--json", help="Print files and public keys as JSON.")] = False,
) -> None:
    """Make a pair of CURVE keys for each name: NAME.key to give away, NAME.key_secret to keep."""
    from specwire.runtime.transport.keys import KeyFileError, load_public_key, make_keys

    made = []
    for name in names:
        try:
            public, secret = make_keys(folder, name)
            made.append(
                {"name": name, "public": str(public), "secret": str(secret), "key": load_public_key(public)}
            )
        except KeyFileError as error:
            fail(str(error))
    if json:
        print_json(made)
        return
    for row in made:
        output().print(f"{row['public']}  {row['key']}", markup=False, soft_wrap=True)
        output().print(f"{row['secret']}  (for its owner alone)", markup=False, soft_wrap=True)
