"""What ACME adds to aotidoctor."""
