"""What people ask of a run while it is under way, as its executor reads it: at checks, and before it begins moves."""

from __future__ import annotations

from contextlib import suppress

from rebalance_lib.artifacts import Artifacts
from rebalance_lib.errors import RebalanceError
from rebalance_lib.execution.clean_up import CleanUpWatch
from rebalance_lib.execution.messages import Log
from rebalance_lib.execution.records import journal as events
from rebalance_lib.execution.records.journal import Journal
from rebalance_lib.execution.requests import Controls, Request, read_requests
from rebalance_lib.execution.settings import Settings


class RunRequests:
    """The requests of one run.

    Attributes:
        controls: What all requests come to, as they were last read.
        ended: Why somebody ended the run, by a cancel or a clean-up elsewhere; None if nobody did.
    """

    def __init__(
        self, artifacts: Artifacts, approved: Settings, watch: CleanUpWatch, journal: Journal, log: Log
    ) -> None:
        self._artifacts = artifacts
        self._approved = approved
        self._watch = watch
        self._journal = journal
        self._log = log
        self._noted: frozenset[str] = frozenset()
        self.controls = Controls(approved)
        self.ended: str | None = None

    def read(self) -> None:
        """Read them; what cannot be read now counts as unchanged."""
        if self._watch.started():
            self.ended = self.ended or f"the run was cleaned up elsewhere{self._watch.by}"
            return
        with suppress(RebalanceError):
            requests = read_requests(self._artifacts)
            self.controls = Controls.of(self._approved, requests)
            self._note(requests)
        if self.controls.cancelled is not None:
            self.ended = str(self.controls.cancelled)

    def called_off(self) -> bool:
        """Whether somebody ended the run, read right now; raises if that cannot be read."""
        if self.ended is None:
            cancelled = Controls.of(self._approved, read_requests(self._artifacts)).cancelled
            if cancelled is not None:
                self.ended = str(cancelled)
            elif self._watch.started(strict=True):
                self.ended = f"the run was cleaned up elsewhere{self._watch.by}"
        return self.ended is not None

    def _note(self, requests: list[Request]) -> None:
        for request in requests:
            if request.name not in self._noted:
                self._log(str(request))
                self._journal.note(
                    events.REQUEST, kind=request.kind, value=request.value, by=request.by, requested_at=request.at
                )
        self._noted = frozenset(request.name for request in requests)
