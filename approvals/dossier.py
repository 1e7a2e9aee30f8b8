"""What the page of a plan says, in the order in which it says it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from django.utils.translation import gettext as _

from approvals import banners, changes, forms, lookalikes, rendering, revisions, steering
from approvals.conversation import Conversation
from approvals.papers import Papers
from approvals.refusals import Refusal, refusal
from approvals.rendering import Shown
from approvals.standing import Approvals, approvals
from approvals.warnings import WORDS, Stage, stage
from audit import sentences
from plans.models import Plan
from plans.status import Status


@dataclass(frozen=True, slots=True)
class Line:
    """One event of the timeline."""

    at: datetime
    tone: str
    sentence: sentences.Sentence


@dataclass(frozen=True)
class Dossier:
    """Texts for the templates, which escape them. `opened`: since when the page is open."""

    papers: Papers
    opened: datetime

    @cached_property
    def talk(self) -> Conversation:
        return Conversation(self.papers, self.opened)

    @cached_property
    def title_runs(self) -> list[str]:
        return rendering.runs(self.papers.assessment.title)

    @cached_property
    def title_badges(self) -> tuple[lookalikes.Badge, ...]:
        return lookalikes.badges(self.papers.assessment.title)

    @property
    def share_left(self) -> str:
        """Of the ring, in hundredths."""
        return f"{min(100.0, 100 * self.papers.decide_in_ms / max(1, self.papers.window_ms)):.1f}"

    @property
    def stage(self) -> Stage:
        """How much of its window is left while people can decide on it."""
        papers = self.papers
        return stage(papers.decide_in_ms, papers.window_ms) if papers.pending else Stage.PLENTY

    @property
    def window_title(self) -> str:
        """The title of the browser's tab, with the warning in front."""
        title = self.papers.assessment.title or self.papers.plan.plan_id
        return f"{WORDS[self.stage]} · {title}" if self.stage else title

    @cached_property
    def banner(self) -> banners.Banner | None:
        if self.papers.closing:
            return banners.Banner(
                "warn",
                _("Its time is over"),
                [_("Nothing was applied. It is being planned again.")],
            )
        state = banners.State(
            self.papers.plan,
            self.papers.decisions,
            self.papers.attempts,
            self.papers.replan,
            self.papers.successor,
            stopped=self.papers.stop is not None,
        )
        return banners.banner(state)

    @cached_property
    def refusal(self) -> Refusal | None:
        """The target does not let this app in: the reader cannot mend it, but hears who can."""
        return refusal(self.papers)

    @cached_property
    def news(self) -> revisions.News | None:
        return revisions.news(self.papers.plan, self.papers.all_revisions, self._last_seen())

    def _last_seen(self) -> Plan | None:
        """The latest earlier revision that this person decided on."""
        mine = [
            plan
            for plan in self.papers.all_revisions
            if plan.revision < self.papers.plan.revision
            and any(d.person_id == self.papers.person.pk for d in self.papers.decisions_of(plan))
        ]
        return mine[-1] if mine else None

    @cached_property
    def changes(self) -> list[changes.Change]:
        return changes.changes(self.papers.plan)

    @property
    def before(self) -> str:
        """What the old values are called: as things are, or as they were before it was sent."""
        plan = self.papers.plan
        over = plan.is_terminal or plan.status in (Status.UNKNOWN, Status.UNRESOLVED)
        return _("Before") if over else _("Now")

    @property
    def no_ops(self) -> int:
        return sum(change.no_op for change in self.changes)

    @cached_property
    def flags(self) -> list[steering.Flag]:
        plan, rows = self.papers.plan, self.papers.evidence_rows
        found = [text for row in rows for text in (row.label, row.text, row.url)]
        return steering.flags([plan.summary, plan.reason, plan.task_id, *found])

    @property
    def agent_words(self) -> list[str]:
        return [
            rendering.prose(t)
            for t in (self.papers.plan.summary, self.papers.plan.reason)
            if t.strip()
        ]

    @property
    def timeline(self) -> list[Line]:
        revision = {plan.plan_id: plan.revision for plan in self.papers.all_revisions}
        return [
            Line(
                event.at,
                sentences.tone(event),
                sentences.sentence(event, revision.get(event.plan_id)),
            )
            for event in reversed(self.papers.events)
        ]

    @property
    def inputs(self) -> Shown:
        return rendering.exact_text(bytes(self.papers.plan.inputs))

    @property
    def result(self) -> Shown | None:
        return (
            rendering.show(self.papers.plan.result) if self.papers.plan.result is not None else None
        )

    @property
    def confirm(self) -> str:
        return forms.confirmation(self.papers.plan, self.papers.assessment.risk)

    @property
    def shown_at(self) -> str:
        return forms.shown_at(self.papers.plan, self.papers.assessment, self.papers.now)

    @cached_property
    def approvals(self) -> Approvals:
        return approvals(self.papers)

    @property
    def state(self) -> str:
        """Changes when the page must be replaced under the reader, and at nothing less."""
        latest = self.papers.latest.plan_id if self.papers.latest else ""
        parts = [
            self.papers.plan.status,
            str(self.papers.plan.round),
            self.papers.assessment.digest[:16],
            latest,
        ]
        papers = self.papers
        flags = (bool(papers.stop), papers.closing, self.refusal is not None)
        facts = (len(papers.attempts), len(papers.standing), *map(int, flags))
        return ".".join([*parts, *map(str, facts)])
