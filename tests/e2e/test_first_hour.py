"""Ten ways in which a new user gets it wrong: the first screen says what, and what to do next, in three lines."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

pytestmark = pytest.mark.torch
CUDA = Path(__file__).parents[1] / "data" / "cuda" / "mlp.pt2"

# What is typed, what the first line says, and what the next step is.
MISUSES = {
    "no inputs": ("run model.pt2", "HEALTHY  it loads", "--inputs or --generate"),
    "swapped": ("run sample.pt --inputs model.pt2", "CANNOT EXAMINE", "did you mean model.pt2 --inputs sample.pt?"),
    "the option forgotten": ("run model.pt2 sample.pt", "Error: Got unexpected", "Did you mean --inputs sample.pt?"),
    "dtype": ("run model.pt2 -i double.pt", "PROBLEM  input-dtype", "args[0] = args[0].to(torch.float32)"),
    "shape": ("run model.pt2 -i small.pt", "PROBLEM  input-shape", "Give args[0] the size"),
    "NHWC": ("run model.pt2 -i nhwc.pt", "PROBLEM  input-shape", "args[0] = args[0].permute(0, 3, 1, 2)"),
    "missing": ("run model.pt2 -i smple.pt", "CANNOT EXAMINE  no such file: smple.pt", "did you mean sample.pt?"),
    "truncated": ("run cut.pt2 -i sample.pt", "PROBLEM  artifact-corrupt", "Copy the package again"),
    "device": (
        "run cuda.pt2 --generate --emulate never",
        "PROBLEM  device-unavailable",
        "Run it on a host with that device",
    ),
    "torch too old": ("compat model.pt2 --torch 2.5", "WILL NOT RUN", "Compile the package again"),
    "only a log": ("check crash.log", "PROBLEM  artifact-wrong-kind", "aotidoctor classify crash.log"),
    "no command": ("model.pt2", "Error: No command is named", "Did you mean: aotidoctor check model.pt2"),
}


@pytest.fixture(scope="module")
def room(packages, tmp_path_factory):
    """A package of a convolution with inputs that are right and wrong."""
    import torch

    place = tmp_path_factory.mktemp("first")
    shutil.copy(packages.package("conv"), place / "model.pt2")
    ((image,), _) = packages.call("conv")
    assert tuple(image.shape) == (1, 3, 16, 16)
    calls = {"sample": image, "double": image.double(), "small": image[..., :8].contiguous()}
    for name, tensor in {**calls, "nhwc": image.permute(0, 2, 3, 1).contiguous()}.items():
        torch.save((tensor,), place / f"{name}.pt")
    (place / "cut.pt2").write_bytes((place / "model.pt2").read_bytes()[:700_000])
    shutil.copy(CUDA, place / "cuda.pt2")
    (place / "crash.log").write_text("RuntimeError: index out of bounds: 0 <= tmp7 < 100L\n")
    return place


def first_lines(done):
    """The headline and the advice; of a usage error all but the usage."""
    if not done.stdout:
        return [line for line in done.stderr.splitlines() if line and not line.startswith(("Usage:", "Try "))]
    head, *rest = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    _, _, advice = "\n".join(rest).partition("What to do ")
    return [head, *(line for line in advice.splitlines() if line and not re.match("Tried|Try next", line))]


@pytest.mark.parametrize("name", MISUSES)
def test_what_is_wrong_and_what_to_do_next(name, room, command_line):
    words, said, step = MISUSES[name]
    # Given to the command: the line of commands keeps the environment in which the first test of a worker began it.
    wide = {"COLUMNS": "200"}
    done = command_line(*words.split(), *([] if name == "no command" else ["-q"]), cwd=room, env=wide)
    lines = first_lines(done)
    assert lines[0].startswith(said), done.stdout + done.stderr
    assert step in " ".join(lines)
    assert len(lines) <= 3, lines
