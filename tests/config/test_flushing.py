"""Between transactional tests every table is emptied, whoever still works on them."""

from __future__ import annotations

import threading
import time

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction


@pytest.mark.django_db(transaction=True)
def test_a_request_that_outlives_its_test_is_waited_for() -> None:
    """The end of this test is the test: without the wait the flush and the thread deadlock."""
    begun = threading.Event()

    def work() -> None:
        with transaction.atomic():
            User.objects.create(username="late")
            begun.set()
            time.sleep(0.3)
            with connection.cursor() as cursor:
                for table in connection.introspection.table_names():
                    cursor.execute(f'SELECT 1 FROM "{table}" LIMIT 1')
        connection.close()

    threading.Thread(target=work).start()
    assert begun.wait(10)
