"""Credentials of a message: userid and roles, set by the broker at which it enters the instance.

A client of the instance's owner may set the userid, the roles, or both, for services that act for
users. The broker sets what is unset. It overwrites both for guests. LOCAL means that the user is
connected to this broker, so it is cleared on messages from another broker.
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
    """Return the credentials for a message that a client sent with this userid and rolemask.

    The two are independent: `flux proxy` sets the userid and leaves the roles to the broker.
    """
    if not client.may_own():
        return client
    return Credentials(
        client.userid if userid == USERID_UNKNOWN else userid,
        client.rolemask if rolemask == ROLES_NONE else rolemask,
    )


def may_use(rolemask: int, userid: int, required: int) -> bool:
    """Tell whether a method that `required` roles may call is open to this sender.

    The owner may do everything; a user only what is open to users, and only under a userid that is known.
    """
    if rolemask & OWNER:
        return True
    return bool(rolemask & required) and userid != USERID_UNKNOWN
