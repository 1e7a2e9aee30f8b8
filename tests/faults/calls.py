"""The commit that the gateway's tests send, and endpoints that wait only where it is the point."""

from plans.custody import Secret
from plans.gateway import Call, Endpoint

COMMIT = Call(
    "POST",
    "/refund/commit",
    b'{"plan_token":"tok_secret_secret","input_fingerprint":"sha256:1"}',
    {"Idempotency-Key": "idem_1", "Plan-Id": "plan_1", "Attempt": "1"},
)

# By the reason a test waits for: a busy machine must not turn an answer into none.
IMPATIENT = {"timeout": {"read_timeout": 0.2}, "deadline": {"total_timeout": 0.4}}


def endpoint(
    base_url: str,
    *,
    connect_timeout: float = 5.0,
    read_timeout: float = 5.0,
    total_timeout: float = 10.0,
) -> Endpoint:
    return Endpoint(
        base_url,
        internal=True,
        credential=Secret("cred-of-the-app"),
        connect_timeout=connect_timeout,
        read_timeout=read_timeout,
        total_timeout=total_timeout,
    )
