"""An image in another order of dims: the order that fits is the remedy, and the others are named."""

from __future__ import annotations

import pytest
from foundry.registry import BY_NAME as CASES
from warm import line

import aotidoctor

ORDER = "args[0] = args[0].permute(0, 3, 1, 2).contiguous()"


@pytest.mark.parametrize("is_compared", [False, True])
def test_an_image_with_channels_last_is_put_in_order(packages, tmp_path, is_compared):
    call = CASES["shape_image_nhwc"].make(packages, tmp_path)
    reference = packages.exported("conv") if is_compared else None
    with line().lent():
        report = aotidoctor.diagnose(call.model, inputs=call.inputs, reference=reference)
    first = report.diagnoses[0]
    assert (first.cause, first.status.value, first.remedy.command) == ("input-shape", "confirmed", ORDER)
    # A square image with exchanged sides has the same sizes: nothing that was run says which it is.
    assert "(0, 3, 2, 1) fits as well" in first.remedy.text
    assert not first.remedy.verified
    assert ("agree with the reference" in first.confirmation) == is_compared


def test_check_offers_the_order_as_well(packages, tmp_path):
    call = CASES["shape_image_nhwc"].make(packages, tmp_path)
    assert aotidoctor.check(call.model, inputs=call.inputs).diagnoses[0].remedy.command == ORDER
