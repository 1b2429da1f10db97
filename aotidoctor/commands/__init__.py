"""What each command does, in a file or folder of the name that it has in ``cli/``: options in, a report out."""
