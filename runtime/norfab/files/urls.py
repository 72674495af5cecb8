"""``nf://`` URLs: which file below the root is meant.

What follows ``nf://`` is a path with slashes, in UTF-8 and as it is: nothing is percent-decoded, no ``..`` is resolved. A path that is
not plainly one of the root is refused and never repaired: what is repaired could be another file's.
"""

from __future__ import annotations

SCHEME = "nf://"
MAX_URL_OCTETS = 4096
MAX_COMPONENT_OCTETS = 255
MAX_DEPTH = 64


class UrlError(ValueError):
    """No URL of a file here; says why."""


def read_url(url: str, *, folder: bool = False) -> tuple[str, ...]:
    """Return the components of the path; raises UrlError.

    Args:
        folder: a folder is meant: a slash at the end is allowed, and so is the root itself.
    """
    if not url.startswith(SCHEME):
        raise UrlError(f"{_shown(url)} does not begin with {SCHEME}")
    try:
        octets = len(url.encode())
    except UnicodeEncodeError:
        raise UrlError(f"{_shown(url)} is not valid UTF-8") from None
    if octets > MAX_URL_OCTETS:
        raise UrlError(f"a URL has up to {MAX_URL_OCTETS} octets")
    if "\0" in url:
        raise UrlError("a URL has no NUL")
    path = url.removeprefix(SCHEME)
    if folder:
        path = path.removesuffix("/")
        if not path:
            return ()
    components = tuple(path.split("/"))
    if len(components) > MAX_DEPTH:
        raise UrlError(f"a URL is up to {MAX_DEPTH} folders deep")
    for component in components:
        if component in ("", ".", ".."):
            raise UrlError(f"{_shown(url)} has an empty component, '.' or '..'")
        if len(component.encode()) > MAX_COMPONENT_OCTETS:
            raise UrlError(f"a component of a URL has up to {MAX_COMPONENT_OCTETS} octets")
    return components


def make_url(components: tuple[str, ...]) -> str:
    """Return the URL of a path."""
    return SCHEME + "/".join(components)


def _shown(url: str) -> str:
    return repr(url[:120])
