"""From bytes to records: package, contract, inputs, host, provenance. Nothing that is read is executed."""
