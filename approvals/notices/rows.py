"""Where the notices of a group go, who wants none, and what was told to whom."""

from __future__ import annotations

from typing import Any, ClassVar

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import models
from django.db.models import Count, Max, Q
from django.utils.translation import gettext_lazy as _

from audit.models import ClockTimestamp
from plans.models import Plan
from plans.models.marks import TrailMark
from plans.models.messages import DUE_WHILE_IT_WAITS, Message, MessageAttempt, Receiver


class Channel(Receiver):
    """One way to tell a group's people; each is switched on and fails by itself."""

    class Kind(models.TextChoices):
        MAIL = "mail", _("mail")
        WEBHOOK = "webhook", _("webhook")

    group = models.ForeignKey(Group, on_delete=models.CASCADE, related_name="notice_channels")
    kind = models.CharField(max_length=7, choices=Kind.choices)
    # Of a webhook. The address is a secret, too: who has it may post to the group's chat. Pages
    # and events name its origin alone. All three are encrypted by custody.
    address = models.BinaryField(null=True, editable=False)
    origin = models.CharField(max_length=300, blank=True)
    internal = models.BooleanField(default=False)
    secret = models.BinaryField(null=True, editable=False)
    old_secret = models.BinaryField(null=True, editable=False)
    old_secret_until = models.DateTimeField(null=True, editable=False)
    secret_number = models.PositiveIntegerField(default=1, editable=False)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["group", "kind"], name="one_channel_of_a_kind"),
            models.CheckConstraint(
                name="a_webhook_has_an_address_and_a_secret",
                condition=Q(kind="mail")
                | Q(address__isnull=False, secret__isnull=False) & ~Q(origin=""),
            ),
            models.CheckConstraint(
                name="a_channel_is_on_or_says_why_not",
                condition=Q(on_since__isnull=True, off_at__isnull=False) & ~Q(off_reason="")
                | Q(on_since__isnull=False, off_at=None, off_reason=""),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} of group {self.group_id}"


class Silence(models.Model):
    """A person who wants no mail. Her groups' webhooks are not hers alone and go on."""

    person = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="silence"
    )
    since = models.DateTimeField(db_default=ClockTimestamp())

    def __str__(self) -> str:
        return f"no mail for {self.person_id}"


class Notice(Message):
    """One plan for one channel, once for each moment: people are needed, or it is over."""

    class Moment(models.TextChoices):
        WAITS = "waits", _("waits for a decision")
        UNRESOLVED = "unresolved", _("needs a person at the target")
        OVER = "over", _("is over")

    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="notices")
    plan = models.ForeignKey(Plan, on_delete=models.PROTECT, related_name="notices")
    # Mail goes to each person; a webhook's notice is for the group.
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="notices"
    )
    moment = models.CharField(max_length=10, choices=Moment.choices)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            # Never twice for a plan, whoever looks at the trail again; and a person who is in
            # two groups gets one mail.
            models.UniqueConstraint(
                fields=["plan", "moment", "channel"],
                name="one_notice_per_channel",
                condition=Q(person=None),
            ),
            models.UniqueConstraint(
                fields=["plan", "moment", "person"],
                name="one_mail_per_person",
                condition=Q(person__isnull=False),
            ),
            models.CheckConstraint(
                name="a_waiting_notice_is_due_some_time",
                condition=DUE_WHILE_IT_WAITS,
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(
                fields=["channel", "next_attempt_at"],
                name="notice_due",
                condition=Q(status="waiting"),
            ),
            models.Index(fields=["channel", "-id"], name="notice_log"),
            models.Index(
                fields=["closed_at"],
                name="notice_closed",
                condition=Q(closed_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"notice {self.uid} of plan {self.plan_id}"


class NoticeAttempt(MessageAttempt):
    """One call of a webhook, or one talk with the mail server; `http_status` is then SMTP's."""

    notice = models.ForeignKey(Notice, on_delete=models.CASCADE, related_name="attempts")

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["notice", "number"], name="one_row_per_try"),
        ]

    def __str__(self) -> str:
        return f"try {self.number} of {self.notice_id}"


class NoticedUpTo(TrailMark):
    """The last event of the trail that was made into notices: one row."""

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(name="one_noticed_up_to", condition=Q(id=1)),
        ]


def states() -> dict[str, int]:
    """How many channels are on, how many of these fail now, how many stopped by failing."""
    on = Q(on_since__isnull=False)
    counts: dict[str, int] = Channel.objects.aggregate(
        on=Count("pk", filter=on),
        failing=Count("pk", filter=on & Q(failing_since__isnull=False)),
        stopped=Count("pk", filter=~on & ~Q(off_reason=Receiver.Off.PERSON)),
    )
    return counts


def tally() -> dict[str, Any]:
    """The same, and when the `last` notice was delivered."""
    delivered = Notice.objects.filter(status=Message.Status.DELIVERED)
    return states() | delivered.aggregate(last=Max("closed_at"))


def waiting() -> dict[str, int]:
    """How many notices are on their way, by the kind of channel."""
    rows = Notice.objects.filter(status=Message.Status.WAITING).values_list("channel__kind")
    return dict.fromkeys(Channel.Kind.values, 0) | dict(rows.annotate(Count("pk")).order_by())
