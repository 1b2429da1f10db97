"""Define fixtures, marker and option for pytest (entry point ``pytest11``); import all else when it is used.

Every run of pytest on the machine imports this file, so it imports nothing of aotidoctor.
"""

from __future__ import annotations

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from aotidoctor.testing.pytest_reports import Doctor

_MARKER = (
    "aoti(*patterns, inputs=None, reference=None, host=None, run=None): one test per package that matches a pattern "
    "below the root folder; a test that does not ask for aoti_package is that the package is healthy"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--aoti-report``."""
    parser.getgroup("aotidoctor", "AOTInductor packages").addoption(
        "--aoti-report",
        action="append",
        default=[],
        metavar="FMT:DIR",
        help="write the report of every examined package to DIR, with an index; FMT is html, md or json; repeatable",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and the writer of reports if ``--aoti-report`` is given."""
    config.addinivalue_line("markers", _MARKER)
    specs = config.getoption("--aoti-report")
    if specs:
        from aotidoctor.testing.pytest_reports import ReportWriter

        config.pluginmanager.register(ReportWriter(config, specs), "aotidoctor-reports")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test per package of ``@pytest.mark.aoti``."""
    if metafunc.definition.get_closest_marker("aoti") is not None:
        from aotidoctor.testing.healthy import parametrize

        if "aoti_package" not in metafunc.fixturenames:
            metafunc.fixturenames.append("aoti_package")
        parametrize(metafunc)


def pytest_itemcollected(item: pytest.Item) -> None:
    """A test of ``@pytest.mark.aoti`` that does not name its package has it examined all the same."""
    if (
        isinstance(item, pytest.Function)
        and item.get_closest_marker("aoti")
        and "aoti_package" not in item.fixturenames
    ):
        item.fixturenames.append("aoti_package")


@pytest.fixture(name="aotidoctor")
def _aotidoctor() -> Doctor:
    """The functions of aotidoctor, and ``assert_aoti_healthy``."""
    from aotidoctor.testing.pytest_reports import Doctor

    return Doctor()


@pytest.fixture
def aoti_package(request: pytest.FixtureRequest) -> Path:
    """The package of this test, of ``@pytest.mark.aoti``; healthy where the test does not ask for it itself."""
    from aotidoctor.testing.healthy import package_of

    return package_of(request)
