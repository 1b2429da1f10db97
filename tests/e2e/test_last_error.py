"""The last message of compiled code, held against what the exception says, with a package of the torch that is here."""

from __future__ import annotations

import json

import pytest
from warm_python import python

RAISES = """
import json, os, sys
import torch
from aotidoctor.worker.load_package import last_error
package, sample = sys.argv[1:]
model = torch._inductor.aoti_load_package(package)
given = torch.load(sample, weights_only=True)
args, kwargs = (given["args"], given["kwargs"]) if isinstance(given, dict) else (given, {})
beyond = [one + 10**6 if one.dtype == torch.int64 else one for one in args]
try:
    model(*beyond, **{name: one + 10**6 if one.dtype == torch.int64 else one for name, one in kwargs.items()})
except Exception as error:
    print(json.dumps([str(error), last_error()]))
"""


@pytest.mark.torch
def test_of_a_real_package_it_says_what_the_exception_says(packages):
    done = python(RAISES, packages.package("embedding"), packages.sample_path("embedding"))
    raised, said = json.loads(done.stdout.splitlines()[-1])
    assert "index out of bounds" in said
    assert raised.splitlines()[0] == said.splitlines()[0]
