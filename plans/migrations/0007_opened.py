from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('plans', '0006_webhooks'),
    ]

    operations = [
        migrations.AlterField(
            model_name='replan',
            name='cause',
            field=models.CharField(choices=[('first', 'first dry run'), ('expired', 'expired'), ('conflicted', 'conflicted'), ('stale', 'stale'), ('changes_requested', 'changes requested'), ('person', 'a person asked'), ('opened', 'opened with little time left')], max_length=20),
        ),
    ]
