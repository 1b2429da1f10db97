"""The commands, each in a file or folder of its name: options in, a report out."""
