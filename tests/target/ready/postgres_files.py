"""The tables that the PostgreSQL target of the tests works on, and its file."""

from __future__ import annotations

TABLES = """
CREATE TABLE accounts (
    id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    holder text NOT NULL,
    tier text NOT NULL DEFAULT 'trial' CHECK (tier IN ('trial', 'paid', 'closed')),
    trial_ends date NOT NULL DEFAULT '2026-12-01',
    credit numeric(12, 2) NOT NULL DEFAULT 10.50 CHECK (credit >= 0),
    visits bigint NOT NULL DEFAULT 9007199254740993,
    closed_at timestamptz,
    note text NOT NULL DEFAULT '',
    touched_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE seats (
    account_id bigint REFERENCES accounts,
    number int,
    person text NOT NULL,
    PRIMARY KEY (account_id, number)
);
CREATE TABLE account_log (account_id bigint, what text);
CREATE UNIQUE INDEX one_holder ON accounts (holder);

CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.touched_at := clock_timestamp();
    INSERT INTO account_log VALUES (NEW.id, TG_OP);
    IF NEW.note = 'slow' AND NEW.tier = 'paid' THEN PERFORM pg_sleep(0.5); END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER touch BEFORE UPDATE ON accounts FOR EACH ROW EXECUTE FUNCTION touch();
"""

FILE = """
[server]
port = 0
app_token = "env:APP_TOKEN"
agent_token = "env:AGENT_TOKEN"

[database]
url = "env:ACCOUNTS_DATABASE_URL"
statement_timeout_ms = 1500
lock_timeout_ms = 3000
"""

ACCOUNT = """
[[operations.covers]]
table = "accounts"
label = "account"
key = ["id"]
columns = [{columns}]
quiet = ["touched_at"]
where = "id = %(account_id)s"
max_rows = {most}
"""

OPERATION = """
[[operations]]
name = "{name}"
statements = [{statements}]
also = {{ {also} }}

[operations.inputs]
account_id = {{ type = "integer", minimum = 1 }}
days = {{ type = "integer", minimum = 1, maximum = 90, optional = true }}
holder = {{ type = "string", optional = true }}
"""


def operation(
    name: str,
    *statements: str,
    columns: str = "tier trial_ends credit visits closed_at holder",
    also: str = "account_log = 1",
    covers: str = "",
    most: int = 1,
) -> str:
    """One operation that covers an account, and whatever `covers` adds."""
    listed = ", ".join(f'"{column}"' for column in columns.split())
    texts = ", ".join(f'"{statement}"' for statement in statements)
    head = OPERATION.format(name=name, statements=texts, also=also)
    return head + ACCOUNT.format(columns=listed, most=most) + covers


SEATS = """
[[operations.covers]]
table = "seats"
label = "seat"
key = ["account_id", "number"]
columns = ["person"]
where = "account_id = %(account_id)s"
max_rows = 3
"""
WHOSE = "WHERE id = %(account_id)s"
EXTEND = f"UPDATE accounts SET trial_ends = trial_ends + %(days)s::int {WHOSE}"
FULL = FILE + "".join(
    [
        operation("extend_trial", EXTEND),
        operation(
            "close_account",
            f"UPDATE accounts SET tier = 'closed', closed_at = %(planned_at)s {WHOSE}",
            "DELETE FROM seats WHERE account_id = %(account_id)s",
            covers=SEATS,
        ),
        operation("pay", f"UPDATE accounts SET tier = 'paid' {WHOSE}"),
        operation("rename", f"UPDATE accounts SET holder = %(holder)s {WHOSE}"),
        operation("give_credit", f"UPDATE accounts SET credit = credit + 1 {WHOSE}"),
        operation("take_credit", f"UPDATE accounts SET credit = credit - 100 {WHOSE}"),
        operation(
            "seat",
            "INSERT INTO seats VALUES (%(account_id)s, 7, %(holder)s)",
            covers=SEATS,
        ),
        # What an operator may get wrong.
        operation("everybody", "UPDATE accounts SET tier = 'paid' WHERE id >= %(account_id)s"),
        operation("unlogged", EXTEND, also=""),
        operation("unseen", f"UPDATE accounts SET tier = 'paid', note = 'x' {WHOSE}"),
        operation("neighbour", EXTEND, "DELETE FROM seats WHERE account_id = %(account_id)s"),
        operation("two", f"UPDATE accounts SET tier = 'paid' {WHOSE}; COMMIT"),
        operation("bare", "UPDATE accounts SET tier = 'paid'; COMMIT"),
        operation("broken", "UPDATE accounts SET nothing = 1"),
        operation("clocked", f"UPDATE accounts SET closed_at = clock_timestamp() {WHOSE}"),
        operation("endless", f"UPDATE accounts SET tier = 'paid' {WHOSE} AND pg_sleep(9) IS NULL"),
    ]
)
