"""How far a model reads beyond its inputs: functions of PyTorch that look past a tensor as compiled kernels do."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from aotidoctor.worker.call import ModelCall  # noqa: E402
from aotidoctor.worker.values.varied_calls import read_beyond  # noqa: E402


class Told:
    """The channel of a worker, as far as it is used here."""

    def __init__(self):
        self.stages, self.result = [], {}

    def enter(self, stage):
        self.stages.append(stage)

    def put(self, **facts):
        self.result |= facts


def asked(model, *args, **kwargs):
    told = Told()
    with torch.no_grad():
        read_beyond(model, ModelCall(args=args, kwargs=kwargs), told)
    return told.result["read_beyond"]


def rows(x, y):
    """As many rows of ``y`` as ``x`` has, whether they are there or not."""
    return x + y.as_strided((x.shape[0], 6), (6, 1), y.storage_offset())


def five(x, y):
    return x[:3] + y.as_strided((5, 6), (6, 1), y.storage_offset())[2:]


def ahead(x, y):
    return x + y.as_strided((6,), (1,), y.storage_offset() - 1)


def written(x, y):
    x.add_(1)
    return rows(x, y)


def table(x, y):
    return y.float()[x.as_strided((4,), (1,), x.storage_offset())]


X = torch.randn(5, 6)


@pytest.mark.parametrize(
    ("model", "args"),
    [
        pytest.param(rows, (X, torch.randn(5, 6)), id="fits"),
        pytest.param(rows, (X, torch.randn(9, 6)), id="more-than-is-read"),
        pytest.param(rows, (X, torch.randn(6).expand(5, 6).clone()), id="copied"),
        pytest.param(lambda x, y: x + y, (X.t(), torch.randn(5, 12)[:, ::2].t()), id="strided"),
        pytest.param(lambda x, y: x + y, (X, torch.randn(6).expand(5, 6)), id="expanded"),
        pytest.param(written, (X.clone(), torch.randn(5, 6)), id="an-input-is-written"),
        pytest.param(table, (torch.tensor([1, 0, 2, 2]), torch.arange(3)), id="indices"),
        pytest.param(lambda x, y: x[:, 0] if y.dtype == torch.uint16 else x, (X, torch.zeros(3, dtype=torch.uint16))),
        pytest.param(lambda x, y: x * 2, (X, torch.randn(0, 3)), id="empty"),
        pytest.param(lambda x, y: x.to_dense() + y, (X.to_sparse(), X), id="sparse"),
    ],
)
def test_within(model, args):
    told = asked(model, *args)
    assert told["decided"]
    assert told["leaves"] == []
    assert told["looked"]


def test_rows_that_another_input_asks_for():
    y = torch.randn(3, 6)
    assert asked(rows, X, y)["leaves"] == [
        {"path": "args[1]", "elements": 18, "needed": 30, "before": False, "rows": 5, "follows": [["args[0]", 0]]}
    ]
    assert asked(rows, x=X, y=y)["leaves"][0]["follows"] == [["kwargs['x']", 0]]
    assert asked(written, X.clone(), y)["leaves"][0]["needed"] == 30


def test_rows_that_nothing_asks_for():
    """Another input has as many, and it is not the reason."""
    told = asked(five, X, torch.randn(3, 6))["leaves"]
    assert [(one["path"], one["needed"], one["follows"]) for one in told] == [("args[1]", 30, [])]


def test_before_the_first_element():
    told = asked(ahead, X, torch.randn(6))["leaves"]
    assert [(one["path"], one["before"], one["elements"]) for one in told] == [("args[1]", True, 6)]


def test_indices_that_are_too_few():
    """What stands behind them are indices too: nothing is out of range."""
    told = asked(table, torch.tensor([1, 0, 2]), torch.arange(3))["leaves"]
    assert [(one["path"], one["needed"]) for one in told] == [("args[0]", 4)]


def test_a_model_that_changes_by_itself():
    told = asked(lambda x, y: x + torch.rand(()), X, X)
    assert not told["decided"]
    assert told["leaves"] == told["looked"] == []


def test_the_inputs_of_the_user_stay_as_they_are():
    x, y = X.clone(), torch.randn(3, 6)
    kept = x.clone(), y.clone()
    asked(written, x, y)
    assert torch.equal(x, kept[0])
    assert torch.equal(y, kept[1])
