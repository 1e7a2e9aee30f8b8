"""Every problem this server answers with, as a table.

400 is not JSON we accept, 422 is JSON that is not allowed.
The class name is the code, the docstring the documented message (docs/problems.md is made of it).
Sources: A-16, A-17 and the bad-input table BI-1…BI-52.
"""

from plans.problem import CATALOGUE, NEXT_ACTIONS, FieldError, Problem

__all__ = ["CATALOGUE", "NEXT_ACTIONS", "FieldError", "Problem"]


# 400: what arrived is not JSON that this server reads


class MalformedJson(Problem, status=400, title="Malformed JSON"):
    """The body is not one well-formed JSON text (RFC 8259, without a byte order mark)."""


class DuplicateMember(Problem, status=400, title="Duplicate member"):
    """An object has the same member name twice."""


class InvalidUtf8(Problem, status=400, title="Not UTF-8"):
    """The body is not valid UTF-8."""


class InvalidUnicode(Problem, status=400, title="Lone surrogate"):
    """A string or member name holds half of a surrogate pair, which is not a character."""


class TooDeep(Problem, status=400, title="Nested too deep"):
    """Objects and arrays are nested deeper than 32 levels."""


class InvalidHeader(Problem, status=400, title="Invalid header"):
    """A request header cannot be read."""


# 401, 403: who asks, and what they may do


class Unauthenticated(
    Problem,
    status=401,
    title="No valid API key",
    next_action="stop",
    headers={"WWW-Authenticate": "Bearer"},
):
    """The request carries no API key, or one that is unknown, expired or revoked."""


class SignInRequired(Problem, status=401, title="Sign in", next_action="stop"):
    """This page needs a signed-in person."""


class MissingScope(Problem, status=403, title="Scope missing", next_action="stop"):
    """The API key does not have the scope that this endpoint needs."""


class MachineCannotDecide(Problem, status=403, title="Only people decide", next_action="wait"):
    """Decisions are made by signed-in people; an API key can never make one."""


class NotAllowed(Problem, status=403, title="Not allowed", next_action="stop"):
    """You do not have the right to do this."""


class PolicyDenied(Problem, status=403, title="Denied by policy", next_action="stop"):
    """A policy does not allow this plan to be approved."""


class UnverifiedPlan(Problem, status=403, title="Plan not verified", next_action="stop"):
    """The plan could not be read back from its target, and this target does not allow that."""


class StepUpRequired(Problem, status=403, title="Confirm who you are"):
    """A policy asks you to sign in again before you approve this plan."""


class SecondPersonRequired(Problem, status=403, title="Second person needed", next_action="wait"):
    """A second person has to confirm this change."""


class ForbiddenOrigin(Problem, status=403, title="Forbidden origin"):
    """The request came from another site, or without a valid CSRF token."""


# 404, 405: nothing there


class NotFound(Problem, status=404, title="Not found", next_action="stop"):
    """There is nothing here, or it is not yours."""


class MethodNotAllowed(Problem, status=405, title="Method not allowed"):
    """This address does not answer to that method."""


# 409, 410: the world is in another state


class PlanAlreadySubmitted(
    Problem, status=409, title="Plan already submitted", next_action="replan"
):
    """This plan ID was submitted before, with other content or by another agent."""


class IdempotencyKeyTaken(Problem, status=409, title="Idempotency key taken"):
    """Another plan of this target already has this idempotency key."""


class PredecessorUnresolved(
    Problem, status=409, title="Predecessor unresolved", next_action="wait"
):
    """The plan to be replaced is approved, being committed, or its outcome is not known yet."""


class PredecessorCommitted(Problem, status=409, title="Predecessor committed", next_action="done"):
    """The plan to be replaced was committed: there is nothing left to replace."""


class TaskEnded(Problem, status=409, title="Task ended", next_action="stop"):
    """The task has ended; no plan is accepted for it any more."""


class IntentClosed(Problem, status=409, title="Intent closed", next_action="stop"):
    """The intent is closed: it was settled, abandoned or committed."""


class ReplanNotHeld(Problem, status=409, title="Re-plan not held", next_action="stop"):
    """This re-plan is not leased to you any more: its lease ran out, or it was finished."""


class NotReplannable(Problem, status=409, title="Cannot be re-planned", next_action="wait"):
    """A plan in this status cannot be planned again."""


class AlreadyDecided(Problem, status=409, title="Already decided", next_action="wait"):
    """Somebody else has already decided this plan."""


class Superseded(Problem, status=409, title="Superseded", next_action="wait"):
    """A newer plan has replaced this one."""


class NotDecidable(Problem, status=409, title="Not open for decisions", next_action="wait"):
    """The plan is not waiting for a decision."""


class CommitInFlight(Problem, status=409, title="Commit in flight", next_action="wait"):
    """A commit of this plan may already have been sent; its outcome is the target's to tell."""


class NotUnresolved(Problem, status=409, title="Not unresolved", next_action="wait"):
    """Only a plan whose outcome could not be found out can be settled by a person."""


class WebhookChanged(Problem, status=409, title="Webhook changed"):
    """The webhook is not, or no longer, as this asks for. Look at it again."""


class TargetInUse(Problem, status=409, title="Target in use", next_action="wait"):
    """The target has plans in flight: its origin and credential cannot change now."""


class PlanExpired(
    Problem,
    status=410,
    title="Plan expired",
    next_action="replanning",
    headers={"Cache-Control": "no-store"},
):
    """The plan's time to decide is over. It is being re-planned."""


# 412, 413, 415, 428: preconditions and the envelope


class DigestMismatch(Problem, status=412, title="The plan has changed"):
    """What you were shown is not what the plan is now. Look at it again, then decide."""


class PreconditionFailed(Problem, status=412, title="Precondition failed"):
    """The If-Match header names another version."""


class BodyTooLarge(Problem, status=413, title="Body too large"):
    """The body is larger than 256 KiB."""


class UnsupportedMediaType(
    Problem,
    status=415,
    title="Unsupported media type",
    headers={"Accept": "application/json"},
):
    """The body must be application/json in UTF-8."""


class ContentEncodingNotAllowed(
    Problem,
    status=415,
    title="Content encoding not allowed",
    headers={"Accept-Encoding": "identity"},
):
    """The body must not be compressed."""


class DigestMissing(Problem, status=428, title="Digest missing"):
    """A decision must carry the digest of what was shown (shown_digest)."""


# 422: JSON, but not allowed


class NotAnObject(Problem, status=422, title="Not an object"):
    """The JSON text must be an object."""


class TooManyMembers(Problem, status=422, title="Too many members"):
    """The text has more than 2,000 object members and array elements in all."""


class StringTooLong(Problem, status=422, title="String too long"):
    """A string or member name is longer than 64 KiB of UTF-8."""


class NulNotAllowed(Problem, status=422, title="NUL not allowed"):
    """A string or member name holds U+0000."""


class NumberOutOfRange(Problem, status=422, title="Number out of range"):
    """A number does not fit a double: it would become infinite or zero."""


class UnsafeInteger(Problem, status=422, title="Unsafe integer"):
    """An integer is beyond 2^53 - 1 in size, where readers round it. Send it as a string."""


class NegativeZero(Problem, status=422, title="Negative zero"):
    """A number is -0, which no two readers agree about. Send 0."""


class UnknownField(Problem, status=422, title="Unknown field"):
    """The request has a member that is not known here; names are case-sensitive."""


class MissingField(Problem, status=422, title="Missing field"):
    """The request lacks a required member."""


class InvalidField(Problem, status=422, title="Invalid field"):
    """A member has the wrong type or a value that is not allowed."""


class InvalidPlanId(Problem, status=422, title="Invalid plan ID"):
    """A plan ID is 1 to 128 ASCII letters, digits and . _ ~ - and neither "." nor ".."."""


class InvalidIdempotencyKey(Problem, status=422, title="Invalid idempotency key"):
    """An idempotency key is 8 to 128 ASCII letters, digits and . _ : -."""


class InvalidTimestamp(Problem, status=422, title="Invalid timestamp"):
    """A time is RFC 3339, like 2026-03-14T09:41:12Z: T, seconds, Z or ±hh:mm up to +14:00."""


class OffsetRequired(Problem, status=422, title="Offset required"):
    """The time has no offset from UTC. End it in Z or ±hh:mm."""


class AlreadyExpired(Problem, status=422, title="Already expired", next_action="replan"):
    """The plan had expired when it arrived."""


class WindowTooShort(Problem, status=422, title="Window too short", next_action="replan"):
    """The plan expires too soon to be reviewed and sent."""


class WindowTooLong(Problem, status=422, title="Window too long", next_action="replan"):
    """The plan expires later than this target allows."""


class TokenElsewhere(Problem, status=422, title="Plan token in another field"):
    """The plan token's text stands outside plan.plan_token, where it would be shown or logged."""


class NoActions(Problem, status=422, title="No actions"):
    """A plan has at least one action."""


class TooManyActions(Problem, status=422, title="Too many actions"):
    """A plan has at most 20 actions."""


class DuplicateAction(Problem, status=422, title="Duplicate action"):
    """A plan has the same action twice."""


class ActionNotAllowed(Problem, status=422, title="Action not allowed"):
    """An action's op or field is not one that this operation may carry."""


class InputsInvalid(Problem, status=422, title="Inputs invalid"):
    """The inputs do not fit the operation's schema."""


class UnknownTarget(Problem, status=422, title="Unknown target"):
    """There is no such target."""


class UnknownOperation(Problem, status=422, title="Unknown operation"):
    """The target has no such operation."""


class UnknownPredecessor(Problem, status=422, title="Unknown predecessor"):
    """`replaces` names no plan of yours at this target."""


class UnknownReplan(Problem, status=422, title="Unknown re-plan"):
    """`replan_id` names no re-plan of yours."""


class InvalidCursor(Problem, status=422, title="Invalid cursor"):
    """The cursor is not one that this server gave to you for this list."""


class InvalidLimit(Problem, status=422, title="Invalid limit"):
    """`limit` is a whole number from 1 to 200."""


class InvalidParameter(Problem, status=422, title="Invalid parameter"):
    """A query parameter is unknown or has a value that is not allowed."""


class AddressNotAllowed(Problem, status=422, title="Address not allowed"):
    """The URL leads to an address that this server does not call."""


class NoteRequired(Problem, status=422, title="Note required"):
    """Say why: this verdict needs a note."""


class InvalidNote(Problem, status=422, title="Invalid note"):
    """The note is too long or holds characters that cannot be stored."""


class ConfirmationMismatch(Problem, status=422, title="Confirmation mismatch"):
    """The typed value is not the one that the plan shows."""


class ChangesNotOpened(Problem, status=422, title="Changes not opened", next_action="retry_same"):
    """A policy asks that every change is opened before this plan is approved."""


class DecidedTooSoon(Problem, status=422, title="Decided too soon", next_action="retry_same"):
    """A policy asks for a longer look before this plan is approved."""


class IdMismatch(Problem, status=422, title="IDs differ"):
    """An ID in the body differs from the one in the address."""


# 429, 5xx: later


class TooManyPending(Problem, status=429, title="Too many pending plans", next_action="wait"):
    """The agent has as many open plans as it may have. Wait until people have decided some."""


class RateLimited(Problem, status=429, title="Too many requests", next_action="retry_same"):
    """The agent has sent more requests in a minute than it may."""


class InternalError(Problem, status=500, title="Internal error", next_action="investigate"):
    """Something went wrong here. The request ID leads the operator to the cause."""


class DatabaseAway(
    Problem,
    status=503,
    title="Database away",
    next_action="retry_same",
    headers={"Retry-After": "2"},
):
    """The database cannot be reached. Nothing was stored; the same request may be sent again."""
