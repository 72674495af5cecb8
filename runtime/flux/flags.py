"""The bits of the flags octet that a broker looks at, as the plain integers that messages hold."""

from __future__ import annotations

from specwire.generated.flux import Flags

NORESPONSE = int(Flags.NORESPONSE)
UPSTREAM = int(Flags.UPSTREAM)
PRIVATE = int(Flags.PRIVATE)
STREAMING = int(Flags.STREAMING)
