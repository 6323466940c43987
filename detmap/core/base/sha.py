"""SHA-256 without OpenSSL, for the digests of every evaluation.

`hashlib` loads OpenSSL's library, which takes 3.5 MB of memory and 3 ms. The interpreter's own
function gives the same digests. The standard library's `random` imports its hash in the same way.
Large files are hashed by `hashlib`, which is six times as fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import sha256 as sha256
else:
    try:
        from _sha2 import sha256 as sha256  # since Python 3.12
    except ImportError:
        try:
            from _sha256 import sha256 as sha256
        except ImportError:  # an interpreter without either
            from hashlib import sha256 as sha256
