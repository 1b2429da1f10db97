"""The demo's fleet: four causes, made so in 20 of 60 packages, and told apart from what was there the night before."""

from __future__ import annotations

import json
import os
import shutil

import pytest
from typer.testing import CliRunner

from tests.optional import optional

optional("pandas", reason="pandas is not installed (pip install 'aotidoctor[fleet]')")

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def environ(tmp_path_factory):
    """The files of the demo, built once per machine; the fleet beside a copy of them."""
    if shutil.which("g++") is None:
        pytest.skip("there is no g++ to compile the demo's packages with")
    pytest.importorskip("torch", reason="torch is not installed")
    from aotidoctor.commands import demo
    from tests.e2e.foundry.place import cache_dir

    built = demo.prepare_demo({**os.environ, "XDG_CACHE_HOME": str(cache_dir())}, lambda _event: None)
    own = {**os.environ, "XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache"))}
    place = demo.demo_folder(own)
    place.parent.mkdir(parents=True, mode=0o700)
    shutil.copytree(built, place)
    return own


def test_a_fleet_of_two_nights(environ, monkeypatch):
    from aotidoctor.cli import build_app
    from aotidoctor.commands import demo

    monkeypatch.setenv("XDG_CACHE_HOME", environ["XDG_CACHE_HOME"])
    done = CliRunner().invoke(build_app(), ["demo", "--fleet", "--json", "-q"])
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["items"], found["healthy"], found["failing"], found["not_examined"]) == (60, 40, 20, 0)
    shown = {one["cause"]: one for one in found["clusters"]}
    assert {(name, one["count"], one["change"]) for name, one in shown.items()} == set(demo.FLEET_CAUSES)
    shared = {name: {(trait["feature"], trait["value"]) for trait in one["shared"]} for name, one in shown.items()}
    assert ("label client", "numpy") in shared["input-dtype"]
    assert ("label client", "etl") in shared["input-stride"]
    assert ("label exporter", "2.1") in shared["weights-not-loaded"]
    page = (demo.fleet_folder(environ) / demo.PAGE).read_text(encoding="utf-8")
    assert all(one["cause"] in page for one in found["clusters"])
    again = CliRunner().invoke(build_app(), _by_hand(demo, environ))
    assert again.exit_code == 1


def _by_hand(demo_cases, environ):
    place = demo_cases.fleet_folder(environ)
    return [
        "fleet",
        str(place / demo_cases.TONIGHT),
        "--baseline",
        str(place / demo_cases.LAST_NIGHT),
        "--fail-on-new",
        "-q",
    ]
