"""An order at a failpoint reaches one passage, in whichever thread or process that is."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from signal import SIGKILL

import pytest

from tests.matrix.arming import Injected, Orders, pass_by

ROOT = Path(__file__).resolve().parents[2]
DYING = """
import sys; from pathlib import Path; from tests.matrix.arming import Orders, pass_by
pass_by(Orders(Path(sys.argv[1])), "send.after", "plan_1"); print("alive")
"""


@pytest.fixture
def orders(tmp_path: Path) -> Orders:
    return Orders(tmp_path)


def test_an_exception_comes_as_often_as_it_is_ordered(orders: Orders) -> None:
    for turn in range(2):
        orders.arm("claim.after", 7, "raise", turn=turn)
    for _ in range(2):
        with pytest.raises(Injected):
            pass_by(orders, "claim.after", 7)
    pass_by(orders, "claim.after", 7)
    assert orders.left() == []


def test_an_order_is_for_its_step_and_key_alone(orders: Orders) -> None:
    orders.arm("claim.after", 7, "raise")
    for step, key in (("claim.before", 7), ("claim.after", 77), ("claim.after", None)):
        pass_by(orders, step, key)
    assert orders.left() == ["claim.after@7.0"]


def test_an_order_without_a_key_is_for_whoever_comes(orders: Orders) -> None:
    orders.arm("seal.before", None, "raise")
    with pytest.raises(Injected):
        pass_by(orders, "seal.before", None)


def test_of_many_passages_at_once_one_takes_the_order(orders: Orders) -> None:
    orders.arm("claim.after", 7, "raise")
    start = threading.Barrier(8)

    def passes(_: int) -> bool:
        start.wait()
        try:
            pass_by(orders, "claim.after", 7)
        except Injected:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(passes, range(8))) == [False, *[True] * 7]


def test_a_stall_lasts_until_its_time_or_its_file_has_come(orders: Orders, tmp_path: Path) -> None:
    began = time.monotonic()
    orders.arm("send.before", 1, "stall 0.2")
    pass_by(orders, "send.before", 1)
    assert time.monotonic() - began >= 0.2
    go = tmp_path / "go"
    orders.arm("send.before", 1, f"stall until {go}")
    timer = threading.Timer(0.2, go.touch)
    timer.start()
    pass_by(orders, "send.before", 1)
    assert go.exists()
    timer.join()


def test_a_kill_ends_the_process_where_it_is(orders: Orders, tmp_path: Path) -> None:
    orders.arm("send.after", "plan_1", "kill")
    command = [sys.executable, "-c", DYING, str(tmp_path)]
    for status, said in ((-SIGKILL, ""), (0, "alive\n")):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (status, said), done.stderr
