"""Addresses of the audit pages."""

from django.urls import path

from audit import views

urlpatterns = [
    path("", views.audit, name="audit"),
    path("verification/", views.audit_verification, name="audit_verification"),
    path("export", views.audit_export, name="audit_export"),
]
