"""Every refusal and every failure, as one tree.

    ToolwiseError
    ├── ModelFault            the model may write another call
    │   ├── MalformedCall         malformed_call
    │   ├── TruncatedCall         truncated_call
    │   ├── UnknownTool           unknown_tool
    │   ├── InvalidArguments      invalid_arguments
    │   ├── ToolFailed            tool_failed
    │   ├── ToolUnavailable       tool_unavailable
    │   └── ResultInvalid         result_invalid
    ├── PolicyFault           a person or a policy decides
    │   ├── Denied                denied
    │   ├── ApprovalRequired      approval_required
    │   ├── ApprovalExpired       approval_expired
    │   ├── UnsafeTarget          unsafe_target
    │   └── DefinitionChanged     definition_changed
    ├── CallerFault           the caller waits, raises a bound, or gives up
    │   ├── DeadlineExceeded      timeout
    │   ├── LimitExceeded         limit
    │   ├── Overloaded            overloaded
    │   ├── BudgetExceeded        budget_exceeded
    │   ├── InProgress            in_progress
    │   ├── Conflict              conflict
    │   ├── Interrupted           interrupted
    │   ├── ModelTimeout          model_timeout
    │   └── OutcomeUnknown        outcome_unknown
    ├── OperatorFault         whoever runs the machine repairs it; side effects stop meanwhile
    │   ├── StorageUnavailable    storage_unavailable
    │   └── Corrupt               corrupt
    └── UserFault             the person at the command line or in Python changes the request
        ├── BadInput              bad_input
        ├── Unauthenticated       unauthenticated
        ├── NotFound              not_found
        ├── ModelUnavailable      model_unavailable
        └── SettingsDiffer        settings_differ

The group says who acts, `code` is stable and machine-readable, `retryable` says whether the same request can succeed
later without anybody changing it. A message is one sentence that says what to do; it never quotes text that a tool
or a model wrote at length, and never carries a secret.
"""

from __future__ import annotations

from typing import ClassVar, Literal

Actor = Literal["model", "policy", "caller", "operator", "user"]


class ToolwiseError(Exception):
    """Root of every error that this package raises on purpose."""

    code: ClassVar[str] = "error"
    actor: ClassVar[Actor]
    retryable: ClassVar[bool] = False


class ModelFault(ToolwiseError):
    actor = "model"


class MalformedCall(ModelFault):
    """The text of the call does not parse, or parses in more than one way."""

    code = "malformed_call"


class TruncatedCall(ModelFault):
    """The text ended, or a bound was met, before the call was closed. Never closed by guessing."""

    code = "truncated_call"


class UnknownTool(ModelFault):
    """No tool has exactly this name."""

    code = "unknown_tool"


class InvalidArguments(ModelFault):
    """The arguments do not fit the tool's schema, or the tool cannot accept their values."""

    code = "invalid_arguments"


class ToolFailed(ModelFault):
    """The tool ran and could not answer."""

    code = "tool_failed"


class ToolUnavailable(ModelFault):
    """The tool ran and could not answer now; what it depends on does not answer."""

    code = "tool_unavailable"
    retryable = True


class ResultInvalid(ModelFault):
    """The tool ran and returned something that is not a finite JSON value or text. Its effect stands."""

    code = "result_invalid"


class PolicyFault(ToolwiseError):
    actor = "policy"


class Denied(PolicyFault):
    """No policy allows this call, or one forbids it, or the policy could not be asked."""

    code = "denied"


class ApprovalRequired(PolicyFault):
    """A person must confirm this call first; `approval` is the id under which to decide."""

    code = "approval_required"

    def __init__(self, message: str, approval: str = "") -> None:
        super().__init__(message)
        self.approval = approval


class ApprovalExpired(PolicyFault):
    """The confirmation came too late."""

    code = "approval_expired"


class UnsafeTarget(PolicyFault):
    """A path or an address that the tool may not reach."""

    code = "unsafe_target"


class DefinitionChanged(PolicyFault):
    """The tool is not the one that was approved."""

    code = "definition_changed"


class CallerFault(ToolwiseError):
    actor = "caller"


class DeadlineExceeded(CallerFault):
    """The call was ended at its deadline and had no effect that could outlive it."""

    code = "timeout"
    retryable = True


class LimitExceeded(CallerFault):
    """A bound of `core.limits` was met."""

    code = "limit"


class Overloaded(CallerFault):
    """As much is in work as this machine takes at one time, and as much waits as may wait."""

    code = "overloaded"
    retryable = True


class BudgetExceeded(CallerFault):
    """The run, the principal or the tool has used what it was given."""

    code = "budget_exceeded"


class InProgress(CallerFault):
    """The same key is being executed now."""

    code = "in_progress"
    retryable = True


class Conflict(CallerFault):
    """The same key was used with other arguments."""

    code = "conflict"


class Interrupted(CallerFault):
    """Whoever asked went away before the call had its result, which nobody waited for."""

    code = "interrupted"


class ModelTimeout(CallerFault):
    """The model did not answer in time."""

    code = "model_timeout"
    retryable = True


class OutcomeUnknown(CallerFault):
    """The call may have had its effect; nobody may retry it blindly."""

    code = "outcome_unknown"


class OperatorFault(ToolwiseError):
    actor = "operator"


class StorageUnavailable(OperatorFault):
    """A record that must be durable could not be written."""

    code = "storage_unavailable"
    retryable = True


class Corrupt(OperatorFault):
    """Stored bytes are not those that were written."""

    code = "corrupt"


class UserFault(ToolwiseError):
    actor = "user"


class BadInput(UserFault):
    """A file, folder, option or configuration that cannot be used; `field` is where in a request's body it stands."""

    code = "bad_input"

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class Unauthenticated(UserFault):
    """A request to a server without a key, or with one that opens nothing here."""

    code = "unauthenticated"


class NotFound(UserFault):
    """A server has nothing under this path, or no model of this name."""

    code = "not_found"


class ModelUnavailable(UserFault):
    """The model's name is unknown, or its files are missing, unreachable or not the expected ones."""

    code = "model_unavailable"


class SettingsDiffer(UserFault):
    """The output folder was begun with other settings."""

    code = "settings_differ"


LEAVES: tuple[type[ToolwiseError], ...] = tuple(
    leaf for group in ToolwiseError.__subclasses__() for leaf in group.__subclasses__()
)
