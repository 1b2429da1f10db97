"""Derive ranked causes from findings: playbooks, matching, ranking, signature, treatments."""
