"""The file of the ETag target that the tests run."""

from __future__ import annotations

FILE = """
[server]
port = 0
app_token = "env:APP_TOKEN"
agent_token = "env:AGENT_TOKEN"
plan_seconds = {seconds}

[store]
path = "{store}"

[api]
base_url = "{api}"
credential = "env:CUSTOMERS_TOKEN"
settle_by = "{settle_by}"
{more}
connect_timeout_seconds = 1
read_timeout_seconds = 0.5
total_timeout_seconds = 0.9

[[operations]]
name = "change_customer"
object = "customer/{{customer_id}}"
path = "/customers/{{customer_id}}"
method = "{method}"
ignore = ["updated_at"]
{read_only}

[operations.inputs]
customer_id = {{ type = "string", pattern = "[a-z0-9.]{{1,12}}" }}
email = {{ type = "string", optional = true, max_length = 100 }}
city = {{ type = "string", optional = true }}
add_cents = {{ type = "integer", minimum = 1, optional = true }}

[operations.set]
email = {{ input = "email" }}
"address/city" = {{ input = "city" }}
credit_cents = {{ input = "add_cents", add = true, at_most = "limit_cents" }}
"""


def file(
    api: str, store: str, *, settle_by: str = "nobody", method: str = "PATCH", seconds: int = 600
) -> str:
    """The text of a file; what goes with a way of settling is filled in."""
    more = 'marker = "changed_by"' if settle_by == "marker" else ""
    read_only = 'read_only = ["id", "updated_at"]' if method == "PUT" else ""
    return FILE.format(
        api=api,
        store=store,
        settle_by=settle_by,
        method=method,
        seconds=seconds,
        more=more,
        read_only=read_only,
    )
