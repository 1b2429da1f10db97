"""Compare two reports, bundles, packages or hosts, and rank the differences (``aotidoctor diff``)."""
