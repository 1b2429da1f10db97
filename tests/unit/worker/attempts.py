"""What a process tries that is to be confined; prints ``{what: whether it succeeded}``.

Arguments: how it is confined (``files``, ``network``, ``calls``; ``run``, as a run is), and a folder: below it only
``inside`` may be written.
"""

import ctypes
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path


def wrote(path):
    Path(path).write_text("x", encoding="ascii")


def computed():
    thread = threading.Thread(target=lambda: sum(range(1000)))
    thread.start()
    thread.join()
    os.stat(__file__)
    Path(__file__).read_bytes()
    signal.setitimer(signal.ITIMER_REAL, 0)
    bytearray(64 << 20)
    os.kill(os.getpid(), 0)
    resource.getrlimit(resource.RLIMIT_NOFILE)


def forked():
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def traced():
    # PTRACE_SEIZE does not stop it; 0x4206 is its number everywhere.
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(0x4206, os.getppid(), None, None) != 0:
        raise OSError(ctypes.get_errno(), "ptrace")


def attempts(folder):
    (folder / "old").touch()
    return {
        "write inside": lambda: wrote(folder / "inside" / "file"),
        "write outside": lambda: wrote(folder / "file"),
        "overwrite": lambda: wrote(folder / "old"),
        "truncate": lambda: os.truncate(folder / "old", 0),
        "make a folder": (folder / "folder").mkdir,
        "remove": (folder / "old").unlink,
        "link": lambda: (folder / "link").symlink_to("old"),
        "rename": lambda: (folder / "inside" / "file").rename(folder / "renamed"),
        "execute": lambda: subprocess.run(["/bin/true"], check=True),
        "replace itself": lambda: os.execv("/nowhere", ["x"]),
        "fork": forked,
        "tcp": lambda: socket.socket(socket.AF_INET).connect(("127.0.0.1", 9)),
        "udp": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close(),
        "signal the parent": lambda: os.kill(os.getppid(), 0),
        "trace the parent": traced,
        "compute": computed,
    }


def confine(how, folder):
    from aotidoctor.model.jobs import Run
    from aotidoctor.worker import sandbox
    from aotidoctor.worker.channel import Channel

    if "run" in how:
        (folder / "inside" / "channel.jsonl").touch()
        run_dir = folder / "inside" / "R1"
        run_dir.mkdir()
        channel = Channel(folder / "inside" / "channel.jsonl", user_cwd=folder, run_dir=run_dir)
        sandbox.confine_run(Run(confine=True), channel)
    if "files" in how:
        assert sandbox.confine_files([folder / "inside"])
    if "network" in how:
        assert sandbox.close_network()
    if "calls" in how:
        assert sandbox.confine_calls()


def succeeds(attempt):
    try:
        attempt()
    except (FileNotFoundError, ConnectionRefusedError):
        # Nothing was there; but nothing refused it.
        return True
    except OSError:
        return False
    return True


def main():
    folder = Path(sys.argv[2])
    (folder / "inside").mkdir(exist_ok=True)
    made = attempts(folder)
    confine(sys.argv[1].split("+"), folder)
    print(json.dumps({name: succeeds(attempt) for name, attempt in made.items()}))


if __name__ == "__main__":
    main()
