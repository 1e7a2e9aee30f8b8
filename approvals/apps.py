from django.apps import AppConfig


class ApprovalsConfig(AppConfig):
    name = "approvals"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Plans never import approvals: the people who decide introduce themselves."""
        from approvals import signing_in
        from approvals.oversight import ReviewOversight
        from plans.oversight import register

        register(ReviewOversight())
        signing_in.listen()
