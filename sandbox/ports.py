"""Free ports on loopback."""

from __future__ import annotations

import random
import socket
from collections.abc import Container

# Below the range that Linux hands out to outgoing connections, so that a port stays free while nobody listens on it.
PORTS = range(20000, 30000)


def free_port(taken: Container[int] = ()) -> int:
    """A port that nobody listens on now; ``taken`` are those already given away.

    Raises:
        LookupError: None was found.
    """
    for _ in range(1000):
        port = random.choice(PORTS)  # noqa: S311 - a port is no secret
        if port in taken:
            continue
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise LookupError(f"no free port between {PORTS.start} and {PORTS.stop}")
