"""What a log says: bytes in, events and the causes that they point at out. Pure; nothing is run or opened here."""
