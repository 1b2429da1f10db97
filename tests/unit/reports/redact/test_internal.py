"""Names that only somebody's own network or project knows, values of unknown variables, bounds that are values."""

from __future__ import annotations

import pytest

from aotidoctor.model.inputs import TensorDesc, ValueStats
from aotidoctor.reports.redact.private_words import Identity
from aotidoctor.reports.redact.redactor import Placeholders, Redactor


def redactor():
    return Redactor(Identity.of({"HOME": "/root"}, "box"))


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("cannot reach gpu-07.train.corp now", "gpu-07.train.corp"),
        ("connect to ip-10-2.eu-west-1.compute.internal: refused", "compute.internal"),
        ("nas.lan:/export", "nas.lan"),
        ("printer.local", "printer.local"),
        ("pulled registry.acme.io:5000/team/img:3", "registry.acme.io"),
        ("FROM acmeml.azurecr.io/serve:1", "acmeml"),
        ("gcr.io/acme-prod/serve", "acme-prod"),
        ("europe-docker.pkg.dev/acme-prod/serve", "acme-prod"),
        ("model at s3://acme-models/ranker.pt2", "acme-models"),
        ("gs://acme-models/ranker.pt2", "acme-models"),
        ("https://acme-models.s3.eu-west-1.amazonaws.com/x.pt2", "acme-models"),
        ("https://storage.googleapis.com/acme-models/x", "acme-models"),
        ("/projects/bluebird/model.pt2", "bluebird"),
        ("/scratch/bluebird/train/x.py", "bluebird"),
        ("/lustre/bluebird/x/y", "bluebird"),
    ],
)
def test_internal_names_are_hidden(text, hidden):
    shown = redactor().text(text)
    assert hidden not in shown
    assert redactor().text(shown) == shown


@pytest.mark.parametrize(
    "text",
    [
        "/root2/.local/lib/python3.11/site-packages",
        "threading.local",
        "from google.protobuf.internal import decoder",
        "docker.io/library/python",
        "registry-1.docker.io/v2",
        "torch.internal",
        "/scratch/model.pt2",
        "s3fs",
        "the local variable",
    ],
)
def test_ordinary_words_stay(text):
    assert redactor().text(text) == text


@pytest.mark.parametrize(
    ("name", "value", "stays"),
    [
        ("AOT_INDUCTOR_DEPLOY_PASS", "x7Kq02mmPz91LeRR4", False),
        ("AOT_INDUCTOR_DEBUG_INTERMEDIATE_VALUE_PRINTER", "2", True),
        ("TORCHINDUCTOR_CACHE_DIR", "/tmp/cache", True),
        ("AOTI_RUNTIME_CHECK_INPUTS", "1", True),
        ("TORCH_LOGS", "+inductor,output_code", True),
    ],
)
def test_values_of_unknown_variables(name, value, stays):
    assert (redactor().value({name: value})[name] == value) == stays


def tensor(dtype, shape, low, high):
    stats = ValueStats(low=low, high=high, nan=0, inf=0, zeros=0)
    return TensorDesc(
        dtype=dtype, shape=shape, stride=(1,) * len(shape), storage="s", storage_nbytes=8, device="cpu", stats=stats
    )


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (("float32", (1,), 3.14159, 3.14159), (None, None)),
        (("float32", (8, 4), -1.25, 3.14159), (None, None)),
        (("float32", (64,), -1.25, 3.14159), (-1.0, 3.0)),
        (("float32", (64,), 0.0, float("inf")), (0.0, float("inf"))),
        (("int64", (1,), 4711, 4711), (None, None)),
        (("int64", (), 4711, 4711), (None, None)),
        (("int64", (8,), 0, 99), (0, 99)),
    ],
)
def test_bounds_that_are_values(given, shown):
    found = redactor().value(tensor(*given))
    assert (found.stats.low, found.stats.high) == shown


def test_a_project_of_an_earlier_bundle_is_hidden_at_its_place_only():
    """Folders, buckets and people may be called by ordinary words, and a report is full of those."""
    earlier = Placeholders(
        {"<project-1>": "base", "<account-1>": "models", "<user-1>": "shared", "<user-2>": "zebulonq"}
    )
    hide = Redactor(Identity(), strict=True, placeholders=earlier)
    text = "base addr of database, 2 models, shared memory, zebulonq"
    assert hide.text(text) == text.replace("zebulonq", "<user-2>")
    assert hide.text("/projects/base/a.py s3://models/x") == "/projects/<project-1>/a.py s3://<account-1>/x"
    assert {name.text for name in hide.names()} == {"zebulonq"}
