"""A Python that has imported what loads packages. For each request it forks, and goes on as ``python -c CODE`` would.

Started by ``warm_python``. Requests and answers are lines of JSON; the first answer is the number of the process, the
second what it ended with, as ``subprocess`` gives it.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import sys
import types


def warm_up() -> None:
    """Import what a first call of ``aoti_load_package`` imports, and the compiler."""
    import importlib

    gc.disable()
    import torch  # noqa: F401

    for name in (
        "torch._inductor.package",
        "torch.export.pt2_archive._package",
        "torch._inductor.codecache",
        "torch._inductor.compile_fx",
    ):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def serve(requests: int, answers: int) -> dict:
    """Answer until there is nobody who asks. Returns in the children only: what to run."""
    with open(requests, encoding="utf-8", closefd=False) as lines:
        for line in lines:
            request = json.loads(line)
            pid = os.fork()
            if not pid:
                os.close(requests)
                os.close(answers)
                return request
            _tell(answers, pid)
            _tell(answers, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    os._exit(0)


def _tell(answers: int, value: int) -> None:
    os.write(answers, f"{value}\n".encode())


def become(request: dict) -> None:
    """Files, directory, environment and arguments of the new program."""
    for number, name in enumerate(("/dev/null", request["stdout"], request["stderr"])):
        fd = os.open(name, os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_APPEND)
        os.dup2(fd, number)
        os.close(fd)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.argv = ["-c", *request["argv"]]
    paths = [path for path in request["env"].get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:] = ["", *paths, *(path for path in sys.path if path not in paths and path != os.path.dirname(__file__))]


warm_up()
# At its end an interpreter looks through all that it has; to a fork that means copies of all these pages.
gc.freeze()
gc.enable()
own = os.dup(0), os.dup(1)
asked = serve(*own)
become(asked)
sys.modules["__main__"] = main = types.ModuleType("__main__")
exec(compile(asked["code"], "<string>", "exec"), main.__dict__)
