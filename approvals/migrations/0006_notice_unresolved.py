from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('approvals', '0005_expand_first'),
    ]

    operations = [
        migrations.AlterField(
            model_name='notice',
            name='moment',
            field=models.CharField(choices=[('waits', 'waits for a decision'), ('unresolved', 'needs a person at the target'), ('over', 'is over')], max_length=10),
        ),
    ]
