"""One file that a report can be sent with: what is in it, made safe to send, and proven to be.

    collect ─► redact ─► leak test ─► zip ─► leak test of the finished file

Collectors fail one by one: what one could not give is listed in the manifest with the reason, and the rest goes on.
Weights and values of tensors are left out unless they are asked for.
"""

from __future__ import annotations

SCHEMA = "aotidoctor.bundle/1"
MANIFEST = "bundle.json"
REPORT = "report.json"
CASE = "case.json"
CASE_SCHEMA = "aotidoctor.case/1"
GIVEN_LOGS = "logs/given/"
