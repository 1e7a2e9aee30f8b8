"""Reviewers are told, by mail and by a webhook of their group, what waits and how it ended."""
