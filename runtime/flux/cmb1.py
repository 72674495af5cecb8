"""CMB1 in its later edition, which has the flags of Flux v1, so that a broker speaks it to its neighbours."""

from __future__ import annotations

from collections.abc import Sequence

from specwire.generated import cmb1, flux
from specwire.runtime.flux.cmb1_forms import RULES, Kinds, from_flux, to_control, to_flux, to_keepalive
from specwire.runtime.flux.wire import FLUX, Wire

KINDS: Kinds[cmb1.AnyMessage] = Kinds(cmb1.Request, cmb1.Response, cmb1.Event)


class Cmb1Wire:
    """The later edition."""

    name = "cmb1"
    edition = cmb1.EDITION
    rules = RULES
    local = FLUX

    def decode(self, frames: Sequence[bytes]) -> flux.AnyMessage:
        """See `Wire.decode`."""
        message = cmb1.decode(frames)
        if isinstance(message, cmb1.Keepalive):
            return to_control(message.flags, message.userid, message.rolemask, message.errnum, message.status)
        return to_flux(message, message.payload, message.flags)

    def encode(self, message: flux.AnyMessage) -> list[bytes]:
        """See `Wire.encode`."""
        if isinstance(message, flux.Control):
            errnum, status = to_keepalive(message, self.name)
            return cmb1.Keepalive(message.flags, message.userid, message.rolemask, errnum, status).encode()
        return from_flux(message, KINDS, self.name, message.flags, payload=message.payload).encode()


CMB1: Wire = Cmb1Wire()
