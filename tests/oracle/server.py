"""Ask the real server core of ``nvidia-pytriton`` what it says of configs. Runs without any of the wheel's Python code.

The wheel brings no PyTorch backend. An empty one, made here, lets the core go through all that it judges: a model whose
config is accepted loads. The server ends by itself, because one model of the repository never loads.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.oracle.configs import Config

# All that the core asks of a backend.
BACKEND = "void *TRITONBACKEND_ModelInstanceExecute(void) { return 0; }\n"
NEVER = Config(name="never_loads", text="// no comment")
VARIABLE = "AOTIDOCTOR_ORACLE"
VERDICTS = Path(__file__).parents[1] / "data/triton/verdicts.json"
SECONDS = 60
_LOADED = re.compile(r"successfully loaded '([^']+)'")
_REFUSED = (
    re.compile(r"Poll failed for model directory '([^']+)': (.*?)\"?$", re.MULTILINE),
    re.compile(r"failed to load '([^']+)' version -?\d+: (.*?)\"?$", re.MULTILINE),
    re.compile(r"failed to load model '([^']+)': (.*?)\"?$", re.MULTILINE),
)


_UNREADABLE = re.compile(
    r"Error parsing text-format inference\.ModelConfig: (\d+:\d+: .*)\n.*Poll failed for model directory '([^']+)'"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """``reason`` is empty where it is accepted; for an unreadable text it ends in ``line:column: problem``."""

    accepted: bool
    reason: str


def find_server() -> Path | None:
    """``tritonserver`` of the wheel: in this interpreter's packages, or in the folder that ``AOTIDOCTOR_ORACLE`` names."""
    roots = [os.environ.get(VARIABLE, ""), *sys.path]
    found = (Path(root) / "pytriton/tritonserver/bin/tritonserver" for root in roots if root)
    return next((path for path in found if path.is_file()), None)


def ask(server: Path, configs: Iterable[Config]) -> Mapping[str, Verdict]:
    """The verdict of each config, by name."""
    configs = (*configs, NEVER)
    with tempfile.TemporaryDirectory() as room:
        models, backends = Path(room) / "models", Path(room) / "backends"
        for config in configs:
            _lay_out(models, config)
        _make_backend(backends / "pytorch")
        log = _log(server, models, backends)
    found = {
        name: Verdict(accepted=False, reason=reason.replace(str(models), "REPOSITORY").replace(room, "ROOM"))
        for pattern in _REFUSED
        for name, reason in pattern.findall(log)
    }
    for place, name in _UNREADABLE.findall(log):
        found[name] = Verdict(accepted=False, reason=f"failed to read text proto: {place}")
    found |= {name: Verdict(accepted=True, reason="") for name in _LOADED.findall(log)}
    silent = [config.name for config in configs if config.name not in found]
    assert not silent, f"the server says nothing of {silent}:\n{log[-4000:]}"
    return found


def _lay_out(models: Path, config: Config) -> None:
    folder = models / config.name
    folder.mkdir(parents=True)
    (folder / "config.pbtxt").write_bytes(config.for_the_oracle.encode())
    for version in config.versions:
        (folder / version).mkdir()


def _make_backend(folder: Path) -> None:
    folder.mkdir(parents=True)
    source = folder / "backend.c"
    source.write_text(BACKEND)
    command = ["gcc", "-shared", "-fPIC", "-o", str(folder / "libtriton_pytorch.so"), str(source)]
    subprocess.run(command, check=True)


def _log(server: Path, models: Path, backends: Path) -> str:
    command = [
        *(str(server), f"--model-repository={models}", f"--backend-directory={backends}"),
        *(f"--allow-{what}=false" for what in ("http", "grpc", "metrics")),
    ]
    environ = {**os.environ, "LD_LIBRARY_PATH": str(server.parents[3] / "nvidia_pytriton.libs")}
    done = subprocess.run(command, env=environ, capture_output=True, timeout=SECONDS, check=False)
    return (done.stdout + done.stderr).decode("utf-8", "replace")
