"""``python -m aotidoctor`` and the ``aotidoctor`` script."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; ends the process with the exit status."""
    try:
        # Imported here, so that an interrupt during start-up ends like any other.
        from aotidoctor.cli import build_app  # noqa: PLC0415

        build_app()(prog_name="aotidoctor")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
