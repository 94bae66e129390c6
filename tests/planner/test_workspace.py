"""Room on disks, in a layout that is not the cluster's any more."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rebalance_lib.planner import ClusterModel, Mode, Request, Scope
from rebalance_lib.planner.workspace import Layout, Workspace, sum_by
from tests.planner.clusters import Host, cluster, topic


def test_what_a_pass_has_moved_takes_room_where_it_went_and_leaves_room_where_it_was():
    disk = Host(disks={"/data": 100})
    model = ClusterModel.of(cluster({1: disk, 2: disk}, topic("orders", [[1]], 30)).snapshot())
    request = Request(mode=Mode.BALANCE, max_fill=1.0)
    scope = Scope.of(model, request)
    moved = replace(Layout.of(model), broker=np.array([1], np.int32), log_dir=np.array([1], np.int32))
    assert Workspace.of(model, scope, request, Layout.of(model), model.leader).state.free.tolist() == [70, 100]
    assert Workspace.of(model, scope, request, moved, model.leader).state.free.tolist() == [100, 70]


def test_sums_are_exact_beyond_what_a_float_holds():
    huge = np.array([(1 << 60) + 1, (1 << 60) + 3, 5], np.int64)
    assert sum_by(np.array([0, 0, 1], np.int32), huge, 2).tolist() == [(1 << 61) + 4, 5]
