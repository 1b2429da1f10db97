"""What a real server core takes and refuses, recorded, against the rules that speak for the core."""

from __future__ import annotations

import json

from aotidoctor.model.case import Host
from aotidoctor.model.evidence import Severity
from aotidoctor.triton import open_models
from aotidoctor.triton.call_spec import NEWEST_RELEASE
from aotidoctor.triton.judge import judge_model
from tests.every import every
from tests.oracle.configs import CONFIGS, Config
from tests.oracle.server import VERDICTS

SAID = json.loads(VERDICTS.read_text())
# Rules about what the core does before it calls the backend; the others are about torch_aoti.
OF_THE_CORE = ("TRITON-R1", "TRITON-R2", "TRITON-R5", "TRITON-R6", "TRITON-R40", "TRITON-R52")
HOST = Host(system="Linux", machine="x86_64", python="3.11.7")


def refused(config: Config, folder) -> list[str]:
    model = folder / config.name
    for version in config.versions:
        (model / version).mkdir(parents=True)
    model.mkdir(exist_ok=True)
    (model / "config.pbtxt").write_bytes(config.text.encode("utf-8", "surrogateescape"))
    (found,) = open_models.open_models(str(model), NEWEST_RELEASE, {}).models
    findings, _ = judge_model(found)
    loud = [item for item in findings if item.severity is Severity.ERROR or item.kind == "no-gpu-here"]
    return [item.code for item in loud if item.code in OF_THE_CORE]


@every("config", CONFIGS, ids=lambda config: config.name)
def test_the_verdict(config: Config, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(open_models, "read_host", lambda *, artifact, environ: HOST)
    said = SAID[config.name]
    # Of "pytorch" alone the core makes TorchScript: it accepts that, and the loader fails on the package.
    assert bool(refused(config, tmp_path)) == (said is not None or config.name == "only_backend"), said
