"""Carries out many cases in one child, so that torch and Triton are imported once; prints one JSON object a line."""

from __future__ import annotations

import json
import lzma
import os
import re
import sys
import zipfile
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "1"
HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import torch  # noqa: E402
from cases import by_input, edits, healthy, hostile, sample  # noqa: E402
from models import MODELS, flat  # noqa: E402

from aotidoctor.worker.emulation import job  # noqa: E402

DATA = HERE.parent / "data" / "emulation"


class Channel:
    """What a job tells, kept here."""

    def __init__(self, folder):
        self.user_cwd = Path("/")
        self.run_dir = folder
        self.told = {}

    def enter(self, stage):
        self.stage = stage

    def put(self, **values):
        self.told.update(values)

    def warn(self, text):
        pass


def package(name, folder, edit=None):
    """The package, with an edited wrapper where there is an edit; and the line that was edited."""
    path = folder / f"{name}{'-edited' if edit else ''}.pt2"
    line = None
    if edit is None and path.exists():
        return path, line
    packed = folder / "packed"
    packed.write_bytes(lzma.decompress((DATA / f"{name}.pt2.xz").read_bytes()))
    with zipfile.ZipFile(packed) as old, zipfile.ZipFile(path, "w") as new:
        for member in old.namelist():
            content = old.read(member)
            if edit is not None and member.endswith(".wrapper.cpp"):
                text, line = edit(content.decode())
                content = text.encode()
            new.writestr(zipfile.ZipInfo(member), content)
    return path, line


def wrapper(name):
    import io

    with zipfile.ZipFile(io.BytesIO(lzma.decompress((DATA / f"{name}.pt2.xz").read_bytes()))) as archive:
        return next(archive.read(one).decode() for one in archive.namelist() if one.endswith(".wrapper.cpp"))


def run(case, folder):
    """What the emulation said of one case, and how far its outputs are from eager's."""
    path, line = package(case.model, folder, case.edit)
    model, args = sample(case)
    facts = dict(case.facts or {})
    if "element" in facts:
        facts["flat"] = int(
            torch.arange(args[facts["argument"]].numel()).view(args[facts["argument"]].shape)[facts["element"]]
        )
    elif "input" in facts:
        facts["bytes"] = args[facts["input"]].nbytes
    channel = Channel(folder)
    torch.save(args, folder / "inputs.pt")
    spec = {"path": str(folder / "inputs.pt"), "format": "pt", "trusted": False}
    payload = {"package": str(path), "inputs": spec, "keep_outputs": str(folder / "outputs.pt")}
    job.emulate({**payload, "emulate_seconds": 3 if case.id.startswith("hostile") else 60}, channel)
    told = channel.told["emulation"]
    names = re.findall(r'inputs_info_\[\d+\]\.name = "(\w+)"', wrapper(case.model))
    for one in told["findings"]:
        one["buffer_input"] = names.index(one["buffer"]) if one.get("buffer") in names else None
    made = {
        "id": case.id,
        "line": line,
        "kinds": case.kinds,
        "facts": facts,
        "kernel": case.kernel,
        **{key: told.get(key) for key in ("findings", "not_emulated", "launches")},
    }
    if _is_void(case, told["launches"]):
        return None
    if case.kinds is None:
        with torch.no_grad():
            expected = flat(model(*[one.clone() for one in args]))
        outputs = list(torch.load(folder / "outputs.pt").values())
        made["far"] = [_far(one, other) for one, other in zip(outputs, expected, strict=True)]
    return made


def _is_void(case, launches):
    """Whether the edit makes no fault with this sample: a full last block, a grid of one program."""
    launch = next((one for one in launches if one["kernel"] == case.kernel), None)
    word = (case.facts or {}).get("word")
    if launch is None or word not in ("unmasked", "everywhere"):
        return False
    programs = launch["grid"][0]
    return programs == 1 if word == "everywhere" else programs * launch["blocks"]["x"] == launch["numbers"]["xnumel"]


def _far(one, other):
    if one is None or one.shape != other.shape or one.dtype != other.dtype:
        return None
    wide = other.double()
    return float(((one.double() - wide).abs() / (1 + wide.abs())).max()) if other.numel() else 0.0


def cases(which):
    have = {one.name.removesuffix(".pt2.xz") for one in DATA.glob("*.xz")}
    if which == "healthy":
        found = healthy()
    elif which == "hostile":
        found = hostile()
    elif which == "inputs":
        found = by_input()
    else:
        found = [case for name in sorted(have & MODELS.keys()) for case in edits(wrapper(name), name)]
    return [case for case in found if case.model in have]


if __name__ == "__main__":
    torch.set_num_threads(1)
    room = Path(sys.argv[2])
    every, wanted = int(sys.argv[3]), set(sys.argv[4:])
    for at, one in enumerate(cases(sys.argv[1])):
        if one.id in wanted or (not wanted and at % every == 0):
            made = run(one, room)
            if made is not None:
                print(json.dumps(made), flush=True)
