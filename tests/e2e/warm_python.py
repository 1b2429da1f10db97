"""``python(code)``: what ``python -c code`` does, without the seconds in which torch and its compiler are imported.

A process that has imported them forks for each program. What only a new interpreter shows (its start, what is read at
the import of torch) is asked by tests that start one.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

SERVER = Path(__file__).with_name("warm_server.py")
SECONDS = 240
# A traceback begins in the script.
AS_A_SCRIPT = """
import sys

sys.argv = sys.argv[1:]
sys.excepthook = lambda kind, error, trace: sys.__excepthook__(
    kind, error.with_traceback(trace.tb_next.tb_next), None
)
__file__ = sys.argv[0]
exec(compile(open(__file__).read(), __file__, "exec"))
"""


def python(
    code: str,
    *argv: str | Path,
    cwd: str | Path | None = None,
    env: Mapping[str, str] | None = None,
    seconds: float = SECONDS,
) -> subprocess.CompletedProcess[str]:
    """Run the program; output and status as ``subprocess.run`` gives them."""
    words = [str(word) for word in argv]
    return _server().run(code, words, cwd or Path.cwd(), {**(os.environ if env is None else env)}, seconds)


def python_script(
    path: str | Path, *argv: str | Path, cwd: str | Path | None = None, seconds: float = SECONDS
) -> subprocess.CompletedProcess[str]:
    """What ``python path`` does. ``path`` is absolute; the folder of the script is not on ``sys.path``."""
    return python(AS_A_SCRIPT, path, *argv, cwd=cwd, seconds=seconds)


def close() -> None:
    """End the warm process, if there is one."""
    if _server.cache_info().currsize:
        _server().close()
        _server.cache_clear()


@lru_cache(maxsize=1)
def _server() -> Server:
    return Server()


class Server:
    """The warm process."""

    def __init__(self) -> None:
        # Threads of numpy's OpenBLAS would not survive the fork.
        environ = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, str(SERVER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ
        )

    def run(
        self, code: str, argv: list[str], cwd: str | Path, env: dict[str, str], seconds: float
    ) -> subprocess.CompletedProcess[str]:
        """One program."""
        with tempfile.TemporaryDirectory(prefix="warm-python-") as folder:
            stdout, stderr = Path(folder, "stdout"), Path(folder, "stderr")
            for path in (stdout, stderr):
                path.touch()
            asked = {
                "code": code,
                "argv": argv,
                "cwd": str(cwd),
                "env": env,
                "stdout": str(stdout),
                "stderr": str(stderr),
            }
            self._process.stdin.write(json.dumps(asked).encode() + b"\n")
            self._process.stdin.flush()
            pid = self._answer(seconds)
            try:
                status = self._answer(seconds)
            except BaseException:
                os.kill(pid, signal.SIGKILL)
                raise
            texts = [path.read_text(encoding="utf-8", errors="replace") for path in (stdout, stderr)]
        return subprocess.CompletedProcess([sys.executable, "-c", code, *argv], status, *texts)

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()

    def _answer(self, seconds: float) -> int:
        data = b""
        while not data.endswith(b"\n"):
            if not select.select([self._process.stdout], [], [], seconds)[0]:
                raise TimeoutError(f"the program did not end within {seconds:g} s")
            part = os.read(self._process.stdout.fileno(), 1)
            assert part, "the warm Python ended"
            data += part
        return int(data)
