"""Dry run of a subscriber: what it would receive and delete.

`preview` compares a server's list of files with an inbox. Nothing is changed: the inbox is neither
created nor locked, so a subscriber may use it meanwhile. A file whose state the journal does not
have is read each time.

A listing does not say which places the server cannot read now. A file there that the server does
not list is reported as deleted, although the server would not delete it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec

from specwire.runtime.containment import open_folder, open_root
from specwire.runtime.filemq.connection import Paths
from specwire.runtime.filemq.deletion import DeletionLimit
from specwire.runtime.filemq.ignore import IgnoreRule
from specwire.runtime.filemq.inbox import explaining
from specwire.runtime.filemq.journal import Inventory, Journal
from specwire.runtime.filemq.listing import ListedFile
from specwire.runtime.filemq.names import RESERVED, covers, is_folder
from specwire.runtime.filemq.policy import InboxRules


class Preview(msgspec.Struct, frozen=True):
    """Files that a subscriber would receive and delete, in order of name.

    Attributes:
        missing: files to receive that the inbox does not have.
        changed: files to receive that the inbox has in another version.
        refused: listed names that it does not accept, with the reason.
        deleted: names of files and empty folders to delete.
        withholds: the subscriber would keep these: too many would be deleted at once.
    """

    missing: list[ListedFile] = []
    changed: list[ListedFile] = []
    refused: list[tuple[str, str]] = []
    deleted: list[str] = []
    withholds: bool = False


class HeldFiles(msgspec.Struct, frozen=True):
    """Files that an inbox holds.

    Attributes:
        digests: SHA-1 by name, under the paths.
        deletable: names of those that the server may delete, if it does not publish them.
        withheld: names of all files of which a deletion is withheld.
        total: number of files in the inbox that its journal would have.
    """

    digests: dict[str, str] = {}
    deletable: list[str] = []
    withheld: frozenset[str] = frozenset()
    total: int = 0


def preview(
    files: Sequence[ListedFile], inbox: Path, paths: Paths, *, rules: InboxRules, origin: str, folders: bool
) -> Preview:
    """Compare the files that a server lists with an inbox.

    Args:
        origin: name of the server in the inbox.
        folders: the subscriber creates and deletes empty folders.

    Raises:
        InboxError: the inbox cannot be used.
        ValueError: an ignore pattern of `rules` is not valid.
    """
    ignore = IgnoreRule(rules.ignore)
    held = read_inbox(inbox, paths, origin)
    found = Preview()
    for file in files:
        digest = held.digests.get(file.name)
        if fault := paths.fault_in_file(file.name):
            found.refused.append((file.name, fault))
        elif not ignore.ignores(file.name) and digest != file.sha1:
            (found.missing if digest is None else found.changed).append(file)
    published = {file.name for file in files}
    deleted = [
        name
        for name in held.deletable
        if name not in published and not ignore.ignores(name) and (folders or not is_folder(name))
    ]
    withholds = would_withhold({*deleted}, held, paths, rules)
    return msgspec.structs.replace(found, deleted=deleted, withholds=withholds)


def would_withhold(deleted: set[str], held: HeldFiles, paths: Paths, rules: InboxRules) -> bool:
    """Return whether the limit on deletions would withhold some of these.

    As long as a deletion is withheld, further ones are. The server decides again about those under the paths.
    """
    if not deleted or rules.accept_deletions:
        return False
    files = [name for name in deleted if not is_folder(name)]
    stays = any(name in deleted or not any(covers(path, name) for path in paths) for name in held.withheld)
    return stays or len(files) > DeletionLimit(rules).most(held.total)


def read_inbox(inbox: Path, paths: Paths, origin: str) -> HeldFiles:
    """Read which files an inbox holds under the paths; raises InboxError. There may be no inbox."""
    with ExitStack() as opened, explaining(inbox):
        try:
            root = open_root(inbox)
        except FileNotFoundError:
            return HeldFiles()
        opened.callback(os.close, root)
        own = None
        try:
            own = open_folder(root, [RESERVED])
            opened.callback(os.close, own)
        except FileNotFoundError:
            pass  # no subscriber has used it
        journal = Journal(own, origin, read_only=True)
        opened.callback(journal.close)
        inventory = Inventory(root, journal)
        digests = {name: sha1 for path in paths for name, sha1 in inventory.list_held(path).items()}
        return HeldFiles(
            digests,
            sorted(name for name in digests if journal.find_other_owner(name) is None),
            frozenset(journal.withheld),
            len(journal) + sum(journal.find(name) is None for name in digests),
        )
