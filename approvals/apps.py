from django.apps import AppConfig


class ApprovalsConfig(AppConfig):
    name = "approvals"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Plans never import approvals: the people who decide introduce themselves."""
        from approvals import signing_in
        from approvals.oversight import ReviewOversight
        from approvals.policies.configuration import POLICY, apply_policies
        from plans.configuration import extensions
        from plans.oversight import register

        register(ReviewOversight())
        extensions.register(POLICY, apply_policies)
        signing_in.listen()
