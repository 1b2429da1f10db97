"""Messages between the process that keeps the results and those that judge: a JSON object and perhaps some bytes.

The bytes are a report that is ready to be written: it need not be read on its way.
"""

from __future__ import annotations

import json
import socket
import struct

from aotidoctor.model.json_types import JsonObject

_HEAD = struct.Struct("!II")
# A report is cut long before; an answer that claims more is none.
LARGEST = 256 << 20


class LinkLostError(OSError):
    """The other side is gone, or says what is no message."""


def send(link: socket.socket, message: JsonObject, body: bytes = b"") -> None:
    """Send one message. Raises OSError."""
    text = json.dumps(message).encode()
    link.sendall(_HEAD.pack(len(text), len(body)) + text + body)


def receive(link: socket.socket) -> tuple[JsonObject, bytes] | None:
    """The next message; None at the end. Raises OSError."""
    head = _exactly(link, _HEAD.size)
    if head is None:
        return None
    sizes: tuple[int, int] = _HEAD.unpack(head)
    if max(sizes) > LARGEST:
        raise LinkLostError("a message of implausible size")
    text, body = _exactly(link, sizes[0]), _exactly(link, sizes[1])
    if text is None or body is None:
        raise LinkLostError("it ended in the middle of a message")
    try:
        message = json.loads(text)
    except ValueError as error:
        raise LinkLostError("a message that is not JSON") from error
    if not isinstance(message, dict):
        raise LinkLostError("a message that is not a JSON object")
    return message, body


def _exactly(link: socket.socket, size: int) -> bytes | None:
    """So many bytes; None where the other side has ended."""
    parts: list[bytes] = []
    while size:
        part = link.recv(min(size, 1 << 20))
        if not part:
            if parts:
                raise LinkLostError("it ended in the middle of a message")
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
