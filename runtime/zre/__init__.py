"""ZRE peer (RFC 36): finds peers by endpoint or beacon, and sends messages to peers and to groups.

settings = ZreSettings(name="alice", groups=("chat",), endpoint=("tcp://127.0.0.1:5670",))
async with ZrePeer(settings) as peer:
    await peer.shout("chat", [b"hello"])
    async for event in peer.events():  # classes of `specwire.runtime.zre.events`
        print(event.describe())
"""

from specwire.runtime.zre.peer import ZrePeer, ZreStatus
from specwire.runtime.zre.settings import ZreSettings
from specwire.runtime.zre.state import ZreError

__all__ = ["ZreError", "ZrePeer", "ZreSettings", "ZreStatus"]
