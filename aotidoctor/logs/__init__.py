"""Read logs: bytes in, events and the causes that they suggest out. Pure; nothing is run or opened here."""
