"""Notices: an operator sets the channels of each group, a person says whether mail may come."""

from __future__ import annotations

from typing import Any, Final

from django.conf import settings as configured
from django.contrib import messages
from django.contrib.auth.models import Group
from django.db.models import Prefetch, Q, QuerySet
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from approvals.access import Role, in_group
from approvals.models import Channel, Notice, NoticeAttempt, Silence
from approvals.notices import channels
from approvals.views import PersonRequest, signed_in
from audit import actors
from plans.custody import Secret
from plans.errors import InvalidField, NotAllowed
from plans.problem import Problem
from plans.replies import wants_problem

LOG: Final = 25
ON_OFF: Final = {"on": True, "off": False}


@signed_in
@require_GET
def notices(request: PersonRequest) -> HttpResponse:
    """The groups that review, how each is told, and what was sent last."""
    return _page(request)


@signed_in
@require_POST
def notice_switch(request: PersonRequest, group_id: int) -> HttpResponse:
    """`kind` is `mail` or `webhook`, `to` is `on` or `off`."""
    group, kind = _group(request, group_id), request.POST.get("kind", "")
    if kind not in Channel.Kind.values:
        raise InvalidField(_("Mail or webhook?"), pointer="/kind")
    to = _on_or_off(request)
    if channels.switch(group, kind, to, actor=actors.person(request.user)):
        text = _("{kind} for {group} is {to} now.")
        what = _(kind).capitalize()
        messages.success(request, text.format(kind=what, group=group.name, to=_word(to)))
    else:
        messages.info(request, _("It was {to} already.").format(to=_word(to)))
    return redirect("notices")


@signed_in
@require_POST
def notice_webhook(request: PersonRequest, group_id: int) -> HttpResponse:
    """The answer is the one page that shows the secret. What is wrong is said beside the form."""
    group, url = _group(request, group_id), request.POST.get("url", "").strip()
    internal, actor = request.POST.get("internal") == "on", actors.person(request.user)
    try:
        made, secret = channels.name_webhook(group, url, internal=internal, actor=actor)
    except Problem as problem:
        if wants_problem(request):
            raise
        return _page(request, problem, group)
    return _show_secret(request, made, secret)


@signed_in
@require_POST
def notice_rotation(request: PersonRequest, group_id: int) -> HttpResponse:
    """A new secret, shown once. `number` says which one the page was about."""
    group, number = _group(request, group_id), request.POST.get("number", "")
    if not (number.isascii() and number.isdecimal() and len(number) < 10):
        raise InvalidField(_("Which secret? The form says it."), pointer="/number")
    made, secret = channels.rotate(group, int(number), actor=actors.person(request.user))
    return _show_secret(request, made, secret)


@signed_in
@require_GET
def my_notices(request: PersonRequest) -> HttpResponse:
    """What this person is told, where, and how to have none of it."""
    mine = Group.objects.filter(user=request.user, reviewed_targets__isnull=False).distinct()
    kinds = Channel.objects.filter(group__in=mine, on_since__isnull=False)
    context = {
        "groups": list(mine.order_by("name").values_list("name", flat=True)),
        "by_mail": _names(kinds, Channel.Kind.MAIL),
        "by_webhook": _names(kinds, Channel.Kind.WEBHOOK),
        "silent": Silence.objects.filter(person=request.user).exists(),
        "mail_server": bool(configured.SMTP_HOST),
    }
    return render(request, "approvals/my_notices.html", context)


@signed_in
@require_POST
def my_mail(request: PersonRequest) -> HttpResponse:
    """`to` is `on` or `off`; it is about the person who asks and about nobody else."""
    to = _on_or_off(request)
    if channels.want_mail(request.user, to, actor=actors.person(request.user)):
        messages.success(request, _("Mail to you is {to} now.").format(to=_word(to)))
    else:
        messages.info(request, _("It was {to} already.").format(to=_word(to)))
    return redirect("my_notices")


def _page(
    request: PersonRequest, problem: Problem | None = None, group: Group | None = None
) -> HttpResponse:
    _only_operators(request)
    rows = Channel.objects.select_related("group")
    by_group = {(row.group_id, row.kind): row for row in rows}
    groups = Group.objects.filter(
        Q(reviewed_targets__isnull=False) | Q(notice_channels__isnull=False)
    )
    context: dict[str, Any] = {
        "groups": [
            (each, by_group.get((each.pk, "mail")), by_group.get((each.pk, "webhook")))
            for each in groups.distinct().order_by("name")
        ],
        "log": _log(),
        "mail_server": configured.SMTP_HOST,
        "mail_from": configured.DEFAULT_FROM_EMAIL,
        "problem": problem,
        "faulty": group,
        "posted": request.POST,
    }
    status = problem.status if problem else 200
    return render(request, "approvals/notices.html", context, status=status)


def _log() -> QuerySet[Notice]:
    """The newest first, each with its attempts."""
    attempts = Prefetch("attempts", NoticeAttempt.objects.order_by("number"))
    rows = Notice.objects.select_related("channel__group", "person", "plan__target")
    return rows.prefetch_related(attempts).order_by("-pk")[:LOG]


def _show_secret(request: PersonRequest, channel: Channel, secret: Secret) -> HttpResponse:
    context = {"channel": channel, "secret": secret.reveal()}
    answer = render(request, "approvals/notice_secret.html", context)
    answer.headers["Cache-Control"] = "no-store"
    return answer


def _names(rows: QuerySet[Channel], kind: str) -> list[str]:
    found = rows.filter(kind=kind).order_by("group__name")
    return list(found.values_list("group__name", flat=True))


def _on_or_off(request: PersonRequest) -> bool:
    to = request.POST.get("to", "")
    if to not in ON_OFF:
        raise InvalidField(_("On or off?"), pointer="/to")
    return ON_OFF[to]


def _word(to: bool) -> str:
    return _("on") if to else _("off")


def _group(request: PersonRequest, pk: int) -> Group:
    _only_operators(request)
    return get_object_or_404(Group, pk=pk)


def _only_operators(request: PersonRequest) -> None:
    if not in_group(request.user, Role.OPERATORS):
        raise NotAllowed(_("The notices of groups are the operators' to set."))
