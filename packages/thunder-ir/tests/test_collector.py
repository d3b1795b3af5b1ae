"""The garbage collector, kept still while what lasts is made."""

import gc

from thunder_ir import collector_paused


def test_what_lasts_is_old_afterwards():
    with collector_paused(lasts=True):
        made = [[] for _ in range(10)]
        assert any(one is made for one in gc.get_objects(0))
    assert gc.isenabled() and gc.get_freeze_count() == 0
    assert not any(one is made for one in gc.get_objects(0))


def test_what_others_froze_stays_frozen():
    gc.freeze()
    try:
        with collector_paused(lasts=True):
            pass
        assert gc.get_freeze_count()
    finally:
        gc.unfreeze()
