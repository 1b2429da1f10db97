"""Programs that load packages by themselves, for the tests of watch and guard."""
