"""A process that judges, and does to itself what its job says."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time

from aotidoctor.fleet import pool


def main(number):
    ours = socket.socket(fileno=number)
    settings, _ = pool.receive_message(ours)
    if settings.get("start") == "fails":
        sys.exit("no such thing")
    pool.send_message(ours, {"ready": True})
    while (got := pool.receive_message(ours)) is not None:
        match got[0]["do"]:
            case "exit":
                os._exit(3)
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "hang":
                time.sleep(3600)
            case "half":
                ours.sendall(b"\0\0\0\x10\0\0")
                os._exit(0)
            case "nonsense":
                ours.sendall(b"\xff" * 64)
            case "eat":
                kept = bytearray(300 << 20)
                time.sleep(3600)
                del kept
            case "once":
                # Dies in the first process, and not in the second.
                mark = got[0]["mark"]
                if not os.path.exists(mark):
                    open(mark, "w").close()
                    os._exit(1)
        pool.send_message(ours, {"pid": os.getpid(), "did": got[0]["do"]}, b"x" * 100_000)
