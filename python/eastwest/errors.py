"""Errors that a user can put right, apart from those of scenarios."""


class InputError(ValueError):
    """A file or folder is not what it was taken for."""


class FolderError(InputError):
    """The result folder cannot be written where it was asked for."""
