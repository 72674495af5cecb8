"""Who a message is from: the userid and the roles that a broker stamps on it where it comes in.

The owner of the instance may let messages pass with other credentials, for services that act for users; what
a guest writes there is overwritten. LOCAL says that the user sits at this broker, so it goes where a message
comes from another broker.
"""

from __future__ import annotations

import msgspec

from specwire.generated.flux import USERID_UNKNOWN

OWNER = 1
USER = 2
LOCAL = 4
ADMIN = 8

ROLES_NONE = 0


class Credentials(msgspec.Struct, frozen=True, gc=False):
    """A userid with its roles."""

    userid: int
    rolemask: int

    def may_own(self) -> bool:
        """Tell whether this is the owner of the instance."""
        return bool(self.rolemask & OWNER)


ROUTER = Credentials(USERID_UNKNOWN, OWNER)
"""Those of responses that a broker's connector makes itself."""


def at_ingress(userid: int, owner: int) -> Credentials:
    """Return the credentials of a local client that belongs to `userid`."""
    return Credentials(userid, (OWNER if userid == owner else USER) | LOCAL)


def stamp(client: Credentials, userid: int, rolemask: int) -> Credentials:
    """Return what a message gets that a client sent with this userid and rolemask."""
    if userid == USERID_UNKNOWN and rolemask == ROLES_NONE:
        return client
    return Credentials(userid, rolemask) if client.rolemask & OWNER else client


def may_use(rolemask: int, userid: int, required: int) -> bool:
    """Tell whether a method that `required` roles may call is open to this sender.

    The owner may do everything; a user only what is open to users, and only under a userid that is known.
    """
    if rolemask & OWNER:
        return True
    return bool(rolemask & required) and userid != USERID_UNKNOWN
