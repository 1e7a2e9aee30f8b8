"""The pages of allauth that people can reach; every other one answers 404.

Nobody signs up, and nobody resets a password by mail or keeps addresses: operators make accounts.
"""

from allauth.account import views
from django.db.transaction import atomic
from django.urls import URLPattern, URLResolver, include, path, re_path

from approvals.views import stepping_up
from config import refusals

urlpatterns: list[URLPattern | URLResolver] = [
    path("login/", views.login, name="account_login"),
    path("logout/", views.logout, name="account_logout"),
    path("inactive/", views.account_inactive, name="account_inactive"),
    path("signup/", views.signup, name="account_signup"),
    path("reauthenticate/", stepping_up.confirmation, name="account_reauthenticate"),
    # No event, no new password (L-1).
    path("password/change/", atomic(views.password_change), name="account_change_password"),
    re_path(r"^.+/$", refusals.not_found),
    # Behind the wall, so that allauth finds the addresses that its own code asks for.
    path("", include("allauth.urls")),
]
