"""Start a child: ``--forkserver FD`` serves many requests, ``--once DIR`` serves the one in DIR.

It is started by file name, not with ``-m``, so that it works in an interpreter without an installed aotidoctor, and
that neither the caller's directory nor our site-packages get into ``sys.path``, where modules could shadow others.
"""

from __future__ import annotations

import sys


def _find_package() -> None:
    """Make ``aotidoctor`` importable by its own ``__path__`` and take our folder out of ``sys.path`` again."""
    from pathlib import Path

    sys.path[0] = str(Path(__file__).absolute().parent.parent.parent)
    import aotidoctor  # noqa: F401

    sys.path.pop(0)


def main(argv: list[str]) -> None:
    """Run the requested mode; never returns from ``--once`` (the exit status is the worker's)."""
    match argv:
        case ["--once", run_dir]:
            from pathlib import Path

            from aotidoctor.worker.serve import serve

            serve(Path(run_dir), forked=False)
        case ["--forkserver", fd, *preload]:
            from aotidoctor.worker.forkserver import forkserver

            forkserver(int(fd), tuple(preload))
        case _:
            sys.exit("usage: __main__.py --once DIR | --forkserver FD [MODULE...]")


if __name__ == "__main__":
    _find_package()
    main(sys.argv[1:])
