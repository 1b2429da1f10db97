"""Carries out many cases in one child, so that torch and Triton are imported once; prints one JSON object a line."""

from __future__ import annotations

import io
import json
import lzma
import os
import re
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

from aotidoctor.model.jobs import InputsSource, Run

os.environ["TRITON_INTERPRET"] = "1"
HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import torch  # noqa: E402
from cases import by_input, edits, healthy, hostile, sample  # noqa: E402
from models import MODELS, flat  # noqa: E402
from truth import judge  # noqa: E402

from aotidoctor.model.case import Options  # noqa: E402
from aotidoctor.model.run import Exited, NotStarted, Outcome  # noqa: E402
from aotidoctor.triage.examine import examine  # noqa: E402
from aotidoctor.triage.open_case import open_case  # noqa: E402
from aotidoctor.triage.state import Session  # noqa: E402
from aotidoctor.worker.emulation import emulate as emulate_module  # noqa: E402

DATA = HERE.parent / "data" / "emulation"
WHOLE = HERE.parent.parent / "aotidoctor" / "commands" / "demo_cuda.pt2.xz"


# One process carries out many cases, and writes files for them.
emulate_module.confine_replay = lambda payload, channel: None


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
        _fill(old, new)
    return path, line


def _fill(old, new):
    """GPU code and library that were left out to keep it small: another package's, as nothing of them is executed."""
    names = old.namelist()
    text = next(old.read(one).decode() for one in names if one.endswith(".wrapper.cpp"))
    folder = next(one for one in names if one.endswith(".wrapper.cpp")).rpartition("/")[0]
    with zipfile.ZipFile(io.BytesIO(lzma.decompress(WHOLE.read_bytes()))) as whole:
        given = {one.rpartition(".")[2]: whole.read(one) for one in whole.namelist()}
    for cubin in sorted(set(re.findall(r"/(\w+\.cubin)", text))):
        new.writestr(zipfile.ZipInfo(f"{folder}/{cubin}"), given["cubin"])
    if not any(one.endswith(".so") for one in names):
        new.writestr(zipfile.ZipInfo(f"{folder}/model.wrapper.so"), given["so"])


def wrapper(name):
    with zipfile.ZipFile(io.BytesIO(lzma.decompress((DATA / f"{name}.pt2.xz").read_bytes()))) as archive:
        return next(archive.read(one).decode() for one in archive.namelist() if one.endswith(".wrapper.cpp"))


def run(case, folder, *, causes=False, way="full"):
    """What the emulation said of one case, how far that is right, and how far its outputs are from eager's."""
    path, _ = package(case.model, folder, case.edit)
    model, args = sample(case)
    torch.save(args, folder / "inputs.pt")
    seconds = 3 if case.id.startswith("hostile") else 60
    source = InputsSource(path=str(folder / "inputs.pt"))
    outputs = str(folder / "outputs.pt")
    asked = Run(package=str(path), inputs=source, emulate_way=way, emulate_seconds=seconds, keep_outputs=outputs)
    result = emulate(asked, folder)
    told = result["emulation"]
    text = wrapper(case.model)
    right = judge(case, text if case.edit is None else case.edit(text)[0], args, told)
    if right is None:
        return None
    made = {"id": case.id, "kinds": case.kinds, "right": right, "fault": case.kinds is not None or bool(case.causes)}
    made |= {key: told.get(key) for key in ("findings", "not_emulated", "launches")}
    if causes:
        made["told"] = diagnosed(path, folder, result)
        made["right"]["cause"] = made["told"][:1] in [[one] for one in case.causes] if case.causes else None
    made["in_full"] = told["in_full"]
    if not made["fault"] and way == "full":
        with torch.no_grad():
            expected = flat(model(*[one.clone() for one in args]))
        outputs = list(torch.load(folder / "outputs.pt").values())
        made["far"] = [_far(one, other) for one, other in zip(outputs, expected, strict=True)]
    return made


def emulate(payload, folder):
    """The job's result."""
    channel = Channel(folder)
    emulate_module.emulate(payload, channel)
    return channel.told


class Here:
    """Stands for the runner: what it is asked to emulate is emulated in this process, the first time from a record."""

    def __init__(self, folder, first):
        self.folder, self.first, self.number = folder, first, 0

    def run(self, request):
        self.number += 1
        made = {"id": f"R{self.number}", "request": request}
        if request.job != "emulate":
            return Outcome(**made, ending=NotStarted(reason="not in this process"), stage="start")
        first, self.first = self.first, None
        result = first or emulate(replace(request.payload, emulate_seconds=60), self.folder)
        return Outcome(
            **made, ending=Exited(code=0, done=True), stage="done", result=json.loads(json.dumps(result, default=str))
        )


def diagnosed(path, folder, result):
    """The causes that ``aotidoctor run`` names, the first one first."""
    options = Options(emulate="always", localize=False)
    case, _ = open_case(str(path), str(folder / "inputs.pt"), options, dict(os.environ))
    session = Session(case=case, runner=Here(folder, result))
    diagnoses, _ = examine(session)
    return [one.cause for one in diagnoses]


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
    words = [one for one in sys.argv[4:] if one.startswith("--")]
    every, wanted = int(sys.argv[3]), set(sys.argv[4:]) - set(words)
    way = "quick" if "--quick" in words else "full"
    for at, one in enumerate(cases(sys.argv[1])):
        if one.id in wanted or (not wanted and at % every == 0):
            made = run(one, room, causes="--causes" in words, way=way)
            if made is not None:
                print(json.dumps(made), flush=True)
