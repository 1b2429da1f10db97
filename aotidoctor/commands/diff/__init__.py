"""``aotidoctor diff``: what differs between two reports, bundles, packages or hosts, ranked by what matters."""
