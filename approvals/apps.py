from django.apps import AppConfig


class ApprovalsConfig(AppConfig):
    name = "approvals"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Plans never import approvals: the people who decide introduce themselves."""
        from approvals import signing_in
        from approvals.models import Channel
        from approvals.notices import sending
        from approvals.notices.configuration import NOTICES, apply_notices
        from approvals.notices.telling import BATCH
        from approvals.oversight import ReviewOversight
        from approvals.policies.configuration import POLICY, apply_policies
        from plans import rekeying, sweeper
        from plans.configuration import extensions
        from plans.oversight import register

        register(ReviewOversight())
        extensions.register(POLICY, apply_policies)
        signing_in.listen()
        extensions.register(NOTICES, apply_notices)
        rekeying.also(Channel, "address", "secret", "old_secret")
        sweeper.also(sweeper.Finder(sending.send_notices, sending.due, sweeper.Lane.NOTICES))
        telling = sweeper.Work(sending.tell_people, BATCH, sweeper.Lane.TELLS)
        sweeper.also_every_second(telling)
