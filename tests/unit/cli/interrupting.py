"""Run a command in this process, and send it a signal at one of its function calls: no clock, every moment.

``python interrupting.py COUNT NUMBER FILE WORDS...``: at call COUNT of the command (0: never) comes the signal NUMBER.
FILE gets the number of calls that were seen until the end.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import FrameType

from aotidoctor import __main__ as program


def main() -> None:
    at, number, place = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    sys.argv = ["aotidoctor", *sys.argv[4:]]
    seen = 0

    def count(_frame: FrameType, event: str, _value: object) -> None:
        nonlocal seen
        if event == "call":
            seen += 1
            if seen == at:
                os.kill(os.getpid(), number)

    def receive() -> None:
        real()
        sys.setprofile(count)

    def leave(status: int) -> None:
        sys.setprofile(None)
        place.write_text(str(seen))
        end(status)

    # Before that the signal is the interpreter's.
    real, program.receive_requests = program.receive_requests, receive
    end, os._exit = os._exit, leave
    program.main()


if __name__ == "__main__":
    main()
