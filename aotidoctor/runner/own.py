"""How aotidoctor starts itself: without the working folder among the places that Python imports from.

``python -m`` puts it there first, and what lies beside a stranger's package could then be imported.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from aotidoctor.readers.host.import_path import import_path

_CODE = (
    "import sys; n = 2 + int(sys.argv[1]); sys.path[:] = sys.argv[2:n]; sys.argv[:] = ['aotidoctor', *sys.argv[n:]]; "
    "from {module} import main; main()"
)


def own_command(words: Sequence[str], module: str = "aotidoctor.__main__") -> list[str]:
    """The command ``aotidoctor words`` in a new interpreter that imports from where this one does."""
    paths = import_path()
    return [sys.executable, "-I", "-c", _CODE.format(module=module), str(len(paths)), *paths, *words]
