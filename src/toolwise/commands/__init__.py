"""The commands in groups, one file a group; each command is a few lines over the floors below."""
