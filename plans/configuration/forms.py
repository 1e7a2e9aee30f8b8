"""Admin forms with the rules of the configuration file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from django import forms

from plans.addresses import AddressRefused, check_origin
from plans.configuration import connections, json_schemas
from plans.configuration.changes import KeyChange
from plans.configuration.kinds import AGENT, OPERATION, TARGET, Kind
from plans.configuration.values import credential_text
from plans.custody import Secret
from plans.models import Agent, Operation, Target

if TYPE_CHECKING:
    TargetModelForm = forms.ModelForm[Target]
    OperationModelForm = forms.ModelForm[Operation]
    AgentModelForm = forms.ModelForm[Agent]
else:
    TargetModelForm = OperationModelForm = AgentModelForm = forms.ModelForm


def check_by_kind(form: Any, kind: Kind, *skipped: str) -> None:
    """Hold every field against the converter that the file's key of that name has."""
    for key, convert in kind.keys.items():
        if key in skipped or form.cleaned_data.get(key) is None:
            continue
        try:
            convert(form.cleaned_data[key], Path())
        except ValueError as error:
            form.add_error(key, str(error))


class TargetForm(TargetModelForm):
    """The stored credential is never read into the page; a new one can be written (SEC-18)."""

    # Names of their own: Django's URL check refuses `http://billing:8001`, and has other rules.
    origin = forms.CharField(label="base_url", max_length=500)
    new_credential = forms.CharField(
        label="credential",
        required=False,
        widget=forms.PasswordInput(render_value=False, attrs={"autocomplete": "new-password"}),
        help_text="Write-only. Empty keeps the stored one; a new base_url removes it.",
    )

    class Meta:
        model = Target
        exclude = ("base_url",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["origin"].initial = self.instance.base_url
        self.reconnected: list[KeyChange] = []
        self.stored = Target()

    def clean_new_credential(self) -> Secret | None:
        text = self.cleaned_data["new_credential"]
        return Secret(credential_text(text)) if text else None

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean()
        check_by_kind(self, TARGET, "base_url", "credential", "reviewers")
        least, most = (self.cleaned_data.get(f"{end}_window_seconds") for end in ("min", "max"))
        if least is not None and most is not None and least > most:
            self.add_error("min_window_seconds", "is more than max_window_seconds")
        if "origin" in self.cleaned_data and "new_credential" in self.cleaned_data:
            self._reconnect(self.cleaned_data["origin"], self.cleaned_data["new_credential"])
        return cleaned

    def _reconnect(self, base_url: str, credential: Secret | None) -> None:
        """Try it on the locked row; `save_model` takes the result over from `stored`."""
        if self.instance.pk is not None:
            self.stored = Target.objects.select_for_update().get(pk=self.instance.pk)
        try:
            origin = check_origin(base_url, bool(self.cleaned_data.get("internal")))
            self.reconnected = connections.reconnect(self.stored, str(origin), credential)
        except AddressRefused as error:
            self.add_error("origin", error.detail)
        except connections.PlansInFlight as error:
            self.add_error("origin", str(error))


class OperationForm(OperationModelForm):
    class Meta:
        model = Operation
        fields = "__all__"

    def clean_ops(self) -> list[str] | None:
        """An empty box allows every op; an empty list would allow none."""
        return self.cleaned_data["ops"] or None

    def clean_fields(self) -> list[str] | None:
        return self.cleaned_data["fields"] or None

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean()
        check_by_kind(self, OPERATION, "inputs_schema", "result_schema")
        for key in ("inputs_schema", "result_schema"):
            try:
                if self.cleaned_data.get(key) is not None:
                    json_schemas.check(self.cleaned_data[key])
            except ValueError as error:
                self.add_error(key, str(error))
        return cleaned


class AgentForm(AgentModelForm):
    class Meta:
        model = Agent
        fields = ("name", "owner", "active", "pending_cap", "rate_limit_per_minute")

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean()
        check_by_kind(self, AGENT, "owner")
        return cleaned
