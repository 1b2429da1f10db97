"""The recorded verdicts are those of the real server core, and our reader agrees with it, config by config."""

from __future__ import annotations

import json
import re
import shutil

import pytest

from aotidoctor.triton.config_schema import TextFormatError
from aotidoctor.triton.text_format import parse_config
from tests.oracle.configs import CONFIGS
from tests.oracle.server import VARIABLE, VERDICTS, ask, find_server

pytestmark = pytest.mark.oracle


@pytest.fixture(scope="module")
def verdicts():
    server = find_server()
    if server is None:
        pytest.skip(f"nvidia-pytriton is not installed here, nor in the folder that {VARIABLE} names: make test-oracle")
    if shutil.which("gcc") is None:
        pytest.skip("there is no gcc to make an empty backend with")
    return ask(server, CONFIGS)


def test_what_is_recorded(verdicts) -> None:
    recorded = json.loads(VERDICTS.read_text())
    said = {config.name: verdicts[config.name].reason or None for config in CONFIGS}
    assert {name: bool(reason) for name, reason in said.items()} == {
        name: bool(text) for name, text in recorded.items()
    }


def test_the_reader_agrees(verdicts) -> None:
    differ = []
    for config in CONFIGS:
        reason = verdicts[config.name].reason
        try:
            parse_config(config.for_the_oracle)
            refused = False
        except TextFormatError:
            refused = True
        if refused != bool(re.match("failed to read text proto", reason)):
            differ.append((config.name, reason))
    assert differ == []
    assert len(CONFIGS) >= 40
