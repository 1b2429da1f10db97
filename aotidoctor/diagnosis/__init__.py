"""From findings to a ranked cause: playbooks, matching, ranking, the signature. Treatments: ``treatments``."""
