"""What can go wrong, in words an operator can act on: what is wrong, where, and what to do."""

from __future__ import annotations


class RebalanceError(Exception):
    """Base of every error that this project raises on purpose."""


class InvalidInputError(RebalanceError):
    """A value given by a person or read from a file is not acceptable; nothing was done."""


class FileMissingError(InvalidInputError):
    """A file that is to be read is not there, or no longer."""


class PlanFormatError(InvalidInputError):
    """A reassignment or topics-to-move JSON is not what Kafka accepts; the message names the entry."""


class ClusterError(RebalanceError):
    """The live cluster refused a request, did not answer, or is not in the state the step needs."""


class DriftError(ClusterError):
    """The cluster is no longer what the plan was made for; nothing was changed."""


def error_text(error: Exception) -> str:
    """An error in a line: one of ours says it all, of any other its type is part of what is wrong."""
    return str(error) if isinstance(error, RebalanceError) else f"{type(error).__name__}: {error}"
