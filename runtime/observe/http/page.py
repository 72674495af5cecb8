"""The page as one document: its style, its script and the first view are in it, and it fetches nothing but later views.

The script and the style are allowed by their digests, so nothing that comes from the wire can be run, whatever a fault in the
script might make of it.
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

FOLDER = Path(__file__).parent / "assets"
_DANGEROUS = {b"<": b"\\u003c", b">": b"\\u003e", b"&": b"\\u0026"}


class Page:
    """The document around a view.

    Attributes:
        policy: what a browser may do in it, as ``Content-Security-Policy``.
    """

    def __init__(self) -> None:
        style, script = _read("page.css"), _read("page.js")
        frame = _read("page.html").replace(b"/*style*/", style).replace(b"/*script*/", script)
        self._before, self._after = frame.split(b"/*view*/")
        self.policy = "; ".join(
            (
                "default-src 'none'",
                f"script-src '{_digest(script)}'",
                f"style-src '{_digest(style)}'",
                "connect-src 'self'",
                "img-src data:",
                "base-uri 'none'",
                "form-action 'none'",
                "frame-ancestors 'none'",
            )
        )

    def fill(self, view: bytes) -> bytes:
        """Return the document that begins with a view, which is JSON."""
        for octet, escape in _DANGEROUS.items():
            view = view.replace(octet, escape)
        return self._before + view + self._after


def _read(name: str) -> bytes:
    return (FOLDER / name).read_bytes().strip()


def _digest(octets: bytes) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(octets).digest()).decode()}"
