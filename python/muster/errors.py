"""The exceptions of Muster. Their message is the library's."""

from __future__ import annotations

import os
import traceback
from typing import Any

__all__ = ["AlreadyExists", "Error", "FailedPrecondition", "Interrupted", "InvalidArgument", "JobFailed", "NotFound", "Unavailable"]


class Error(Exception):
    """A call cannot work. Usually the session has failed, and its job's worker must end; the message says why."""


class InvalidArgument(Error):
    """The call can never succeed; the message says what to change."""


class Unavailable(Error):
    """The master did not answer in time."""


class FailedPrecondition(Error):
    """The wrong time, process or job for the call, for example in the child of a fork."""


class AlreadyExists(Error):
    """A table of this name exists with another definition; the message shows both."""


class NotFound(Error):
    """A file is missing."""


class Interrupted(Error):
    """A signal's handler has raised in a wait, which ended the session."""


class JobFailed(Error):
    """A job that this process runs has failed or was cancelled. The message is its reason.

    `exit_code` is that of `muster run` (docs/cli.md); `summary` is what it printed, or empty.
    """

    def __init__(self, reason: str, exit_code: int, summary: dict[str, Any]) -> None:
        super().__init__(reason)
        self.exit_code = exit_code
        self.summary = summary


# In the order of muster::Status::Code.
_CLASSES: tuple[type[Error], ...] = (
    Error,  # kOk, which is none
    InvalidArgument,
    Unavailable,
    FailedPrecondition,
    AlreadyExists,
    Error,  # kInternal
    NotFound,
    Error,  # kUnimplemented
    Interrupted,
)


def class_of(code: int) -> type[Error]:
    """The exception for a code of muster::Status."""
    return _CLASSES[code] if code < len(_CLASSES) else Error


def describe(error: BaseException) -> str:
    """What the failure of a shard says about an exception: "ValueError: no label (trainer.py:12)"."""
    text = traceback.format_exception_only(type(error), error)[-1].strip()
    text = text.encode("utf-8", "backslashreplace").decode()  # half of a surrogate pair is no text elsewhere
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return text
    return f"{text} ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno})"
