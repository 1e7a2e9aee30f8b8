"""The admin's form of a policy, with the rules of the configuration file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from django import forms

from approvals.models import Policy
from approvals.policies import configuration
from plans.configuration.forms import check_by_kind
from plans.configuration.values import Converter

if TYPE_CHECKING:
    PolicyModelForm = forms.ModelForm[Policy]
else:
    PolicyModelForm = forms.ModelForm


class PolicyForm(PolicyModelForm):
    class Meta:
        model = Policy
        fields = (
            "name",
            "active",
            "when",
            "require",
            "note_required",
            "step_up",
            "dwell_seconds",
            "expand_first",
            "deny",
            "raise_risk",
        )

    def clean_when(self) -> str:
        """Browsers send line ends of their own; the file and the form store the same text."""
        text: str = self._as(configuration.condition, self.cleaned_data["when"])
        return text

    def clean_require(self) -> list[dict[str, Any]]:
        wanted: list[dict[str, Any]] = self._as(
            configuration.people, self.cleaned_data["require"] or []
        )
        if missing := configuration.unknown_groups(wanted):
            raise forms.ValidationError(f"names a group that does not exist: {missing[0]}")
        return wanted

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean()
        check_by_kind(self, configuration.POLICY, "when", "require")
        return cleaned

    def _as(self, convert: Converter, value: Any) -> Any:
        try:
            return convert(value, Path())
        except ValueError as error:
            raise forms.ValidationError(str(error)) from None
