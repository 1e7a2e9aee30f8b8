"""A page that moves nothing under the eye of the person who reads it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Page

from plans.models import Plan

# What a person sees as standing still (Layout Instability, without a hand on the page).
STILL = 0.001
WATCH_SHIFTS = """
  window.shifts = [];
  new PerformanceObserver((list) => {
    for (const {value, sources} of list.getEntries())
      window.shifts.push([value, ...sources.map(({node}) => node?.outerHTML?.slice(0, 90))]);
  }).observe({type: "layout-shift"});
"""
TOP = "(id) => document.getElementById(id).getBoundingClientRect().top"


def top_of(page: Page, plan: Plan) -> float:
    """Read in one go: a row that is just being replaced has no place."""
    return float(page.evaluate(TOP, f"plan-{plan.pk}-link"))


@contextmanager
def standing_still(page: Page) -> Iterator[None]:
    """Nothing that was on the page moves meanwhile."""
    # Shifts within half a second of a press do not count, for the browser either.
    page.wait_for_timeout(600)
    page.evaluate(WATCH_SHIFTS)
    yield
    page.wait_for_timeout(300)
    shifts = page.evaluate("window.shifts")
    assert sum(shift[0] for shift in shifts) < STILL, shifts
