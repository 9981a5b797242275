"""Every error this package raises on purpose.

The message of each names the input at fault and the remedy, so that an operator can act on the log line alone.
"""

from __future__ import annotations


class FrontierError(Exception):
    """Root of all errors of this package."""


class ConfigError(FrontierError):
    """A setting is unknown, malformed or contradicts another; the message names it."""


class IdentityError(FrontierError):
    """A reference, key or request record cannot be read; the message shows it."""


class StoreError(FrontierError):
    """The store refused a read or a write; `is_retryable` tells whether waiting may help."""

    def __init__(self, message: str, *, is_retryable: bool = False) -> None:
        super().__init__(message)
        self.is_retryable = is_retryable


class SchemaMismatch(StoreError):
    """The store is not one of ours, or was written by a newer version of this package."""


class RunLocked(StoreError):
    """Another process is working on the same run."""


class IllegalTransition(FrontierError):
    """An event that the transition table does not allow; it is never written."""


class ArtifactError(FrontierError):
    """Evidence cannot be written, or cannot be read back as it was written; `is_missing` tells an absent one apart."""

    def __init__(self, message: str, *, is_missing: bool = False) -> None:
        super().__init__(message)
        self.is_missing = is_missing
