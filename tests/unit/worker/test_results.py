"""Which combinations of nodes are tried in place of what a call wrote."""

from __future__ import annotations

from itertools import islice, product

import pytest

pytest.importorskip("torch")

from aotidoctor.worker.values.match_values import nearest_first


@pytest.mark.parametrize("sizes", [(1,), (3,), (2, 3), (4, 1, 2), (1, 1)])
def test_each_combination_comes_once_and_none_before_a_nearer_one(sizes):
    ranks = list(nearest_first(sizes))
    assert ranks[0] == (0,) * len(sizes)
    assert sorted(ranks) == sorted(product(*map(range, sizes)))
    assert [sum(rank) for rank in ranks] == sorted(sum(rank) for rank in ranks)


def test_a_call_with_many_buffers_is_not_all_its_combinations():
    ranks = list(islice(nearest_first((4,) * 60), 8))
    assert (len(set(ranks)), max(map(sum, ranks))) == (8, 1)
