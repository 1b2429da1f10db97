"""``aotidoctor analyze``: a bundle or a saved report, judged again without the package, by today's playbooks.

    file ─► reading ─► rebuild ─► checks ─► saved findings of runs ─► logs ─► causes ─► changes

Nothing is executed or unpacked to disk, and nothing that the file says of itself is believed before it is checked.
"""

from __future__ import annotations

CODE = "AD-BUN-001"
CODE_FILE = "AD-BUN-002"
