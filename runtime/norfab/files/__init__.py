"""The broker's files (FSS): served below one folder, and fetched whole, once and undamaged.

Files are named by URLs, ``nf://configs/sw1.txt``. `FileHandler` answers for ``fss.service.broker``, which peers ask for a piece at a
time; `FileSharing` is a worker of the service ``filesharing``, as later deployed clients want it, which streams. `fetch` is the
other side, for clients and workers.
"""

from specwire.runtime.norfab.files.cache import FileCache
from specwire.runtime.norfab.files.fetching import Ask, FetchError, fetch
from specwire.runtime.norfab.files.handling import FileHandler
from specwire.runtime.norfab.files.sharing import FileSharing
from specwire.runtime.norfab.files.urls import UrlError, read_url

__all__ = ["Ask", "FetchError", "FileCache", "FileHandler", "FileSharing", "UrlError", "fetch", "read_url"]
