"""The public names: all there, and not imported before they are used."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version

import pytest

import aotidoctor


@pytest.mark.parametrize("name", aotidoctor.__all__)
def test_public_name(name):
    found = getattr(aotidoctor, name)
    if name == "__version__":
        assert found == version("aotidoctor")
    else:
        assert (found.__name__, found.__module__.partition(".")[0]) == (name, "aotidoctor")


def test_unknown_name():
    with pytest.raises(AttributeError, match="nonsense"):
        _ = aotidoctor.nonsense


def test_import_is_cheap():
    script = "import sys, aotidoctor; print([name for name in sys.modules if name.startswith('aotidoctor.')])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['aotidoctor.version']"


def test_a_missing_package_is_a_report():
    report = aotidoctor.check("/nonexistent/model.pt2", None, aotidoctor.Options(), environ=os.environ)
    assert [item.cause for item in report.diagnoses] == ["artifact-missing"]
    assert report.cannot_examine
