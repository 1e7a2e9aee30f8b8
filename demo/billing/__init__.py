"""The demo's target: invoices and refunds, in a process and a database of its own.

It keeps the whole of the target's side of the contract, so it doubles as the reference for
anyone who writes a target: dry run, commit with an idempotency key, read-back by plan ID.
"""
