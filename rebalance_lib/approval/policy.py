"""The approval policy: what the owners of a cluster require before a plan for it is executed.

A run names its cluster by an Airflow connection, which whoever requests the run chooses, and several connections may
lead to one cluster. So a policy is found by Kafka's id of the cluster, which comes from the snapshot:

    approval:
      default:                    # for each cluster, unless its own block says otherwise
        approvers: [anna, ben]
        approvals: 2
      clusters:
        4L6g3nShT-eMCtK--X86sw:   # what is left out here is as in the default
          approvals: 1
          automatic: {max_bytes: 50_000_000_000}

What fails, fails closed. A value that cannot be read refuses the whole file. If there are policies, but neither one
for this cluster nor a default, nothing is approved for it: its id may be misspelt. Without any policy, a person whom
Airflow lets answer approves, and nobody else: automatic approval needs a policy that allows it.

Example: with the file above, Kafka's cluster ``4L6g...`` needs one of anna and ben, and nobody for a plan without risks
that copies up to 50 GB; every other cluster needs both of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self

from rebalance_lib.approval.limits import ApprovalLimits
from rebalance_lib.errors import InvalidInputError
from rebalance_lib.window import Window

SECTION = "approval"


@dataclass(frozen=True, slots=True)
class ApprovalPolicy:
    """What one cluster's owners require.

    Args:
        source: where it is written, for the record.
        approvers: ids of the users who may approve; empty: all whom Airflow lets answer.
        approvals: how many people must approve, 1 or 2.
        requester_may_approve: whether the user who triggered the run counts as one of them.
        automatic: within which limits nobody is asked; None: there is no automatic approval.
        allowed_risks: risks that a person may accept, as patterns of the sentences in which the review names them; a
            plan with any other is not approved. Automatic approval accepts none.
        required_goals: goals that an approved plan meets.
        reason_required: whether who approves must say why.
        quiet_hours: when no move begins, whatever window a run asks for.
    """

    source: str
    approvers: tuple[str, ...] = ()
    approvals: int = 1
    requester_may_approve: bool = False
    automatic: ApprovalLimits | None = None
    allowed_risks: tuple[str, ...] = ("*",)
    required_goals: tuple[str, ...] = ()
    reason_required: bool = False
    quiet_hours: Window | None = None

    def __post_init__(self) -> None:
        if self.approvers and len(self.approvers) < self.approvals:
            raise InvalidInputError(
                f"approvals is {self.approvals}, but approvers names {len(self.approvers)}: name more, or ask for less"
            )

    @classmethod
    def from_dict(cls, source: str, given: Mapping[str, Any]) -> Self:
        """Read it; what is left out is as above.

        Raises:
            InvalidInputError: A name is not known, or a value is not acceptable.
        """
        if unknown := sorted(given.keys() - _READERS.keys()):
            raise InvalidInputError(f"there is no {unknown[0]!r}: use some of {', '.join(_READERS)}")
        return cls(source, **{name: _READERS[name](name, value) for name, value in given.items()})

    def as_dict(self) -> dict[str, Any]:
        """The policy as it was applied, for the record."""
        found = {one.name: getattr(self, one.name) for one in fields(self)}
        lists = {name: list(value) for name, value in found.items() if isinstance(value, tuple)}
        quiet = None if self.quiet_hours is None else str(self.quiet_hours)
        automatic = None if self.automatic is None else asdict(self.automatic)
        return {**found, **lists, "quiet_hours": quiet, "automatic": automatic}


NOT_CONFIGURED = ApprovalPolicy("no approval policy is configured", requester_may_approve=True)


@dataclass(frozen=True, slots=True)
class ApprovalPolicies:
    """The policies of all clusters, as the section ``approval`` of the clusters' file has them.

    ``configured`` is whether there is such a section at all.
    """

    configured: bool = False
    default: ApprovalPolicy | None = None
    clusters: Mapping[str, ApprovalPolicy] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, given: object) -> Self:
        """Read the section.

        Raises:
            InvalidInputError: Something in it is not acceptable; the message says where.
        """
        section = _object(SECTION, given, "default and clusters in it")
        if unknown := sorted(section.keys() - {"default", "clusters"}):
            raise InvalidInputError(f"{SECTION}: there is no {unknown[0]!r}: use default and clusters")
        if not section:
            raise InvalidInputError(f"{SECTION} is empty: give default or clusters, or leave it out")
        default = _object(f"{SECTION}: default", section.get("default", {}), "the fields of a policy in it")
        blocks = _object(f"{SECTION}: clusters", section.get("clusters", {}), "a policy by Kafka's id of each cluster")
        found = {}
        for name, block in blocks.items():
            source = f"{SECTION}: clusters: {name}"
            found[name] = _policy(source, {**default, **_object(source, block, "the fields of a policy in it")})
        of_others = _policy(f"{SECTION}: default", default) if "default" in section else None
        return cls(True, of_others, found)

    def of_cluster(self, cluster_id: str) -> ApprovalPolicy:
        """The policy of this cluster, by Kafka's id.

        Raises:
            InvalidInputError: There are policies, but none for it.
        """
        if not self.configured:
            return NOT_CONFIGURED
        found = self.clusters.get(cluster_id, self.default)
        if found is None:
            raise InvalidInputError(
                f"{SECTION} has no policy for the cluster {cluster_id}, and no default: add one of them"
            )
        return found


def _policy(source: str, given: Mapping[str, Any]) -> ApprovalPolicy:
    try:
        return ApprovalPolicy.from_dict(source, given)
    except InvalidInputError as error:
        raise InvalidInputError(f"{source}: {error}") from error


def _object(what: str, value: object, wanted: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidInputError(f"{what} is {value!r}: give an object with {wanted}")
    for key in value:
        if not isinstance(key, str) or not key.strip():
            raise InvalidInputError(f"{what}: {key!r} is no text: put it in quotes")
    return dict(value)


def _wrong(name: str, value: object, wanted: str) -> InvalidInputError:
    return InvalidInputError(f"{name} is {value!r}: give {wanted}")


def _texts(wanted: str, *, may_be_empty: bool) -> Callable[[str, object], tuple[str, ...]]:
    def read(name: str, value: object) -> tuple[str, ...]:
        if (
            not isinstance(value, list)
            or not (value or may_be_empty)
            or not all(isinstance(one, str) and one and one == one.strip() for one in value)
        ):
            raise _wrong(name, value, wanted)
        if len(set(value)) < len(value):
            raise InvalidInputError(f"{name} is {value!r}: name each once")
        return tuple(value)

    return read


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise _wrong(name, value, "true or false")
    return value


def _approvals(name: str, value: object) -> int:
    if type(value) is not int or value not in (1, 2):
        raise _wrong(name, value, "1 or 2")
    return value


def _automatic(name: str, value: object) -> ApprovalLimits | None:
    if value is False:
        return None
    if not isinstance(value, Mapping) or value.get("max_bytes") is None:
        raise _wrong(name, value, "an object with max_bytes in it, or false")
    return ApprovalLimits.from_dict(value)


def _hours(name: str, value: object) -> Window:
    if not isinstance(value, str):
        raise _wrong(name, value, "hours as text, such as 07:00-20:00 Europe/Berlin")
    try:
        return Window.parse(value)
    except InvalidInputError as error:
        raise InvalidInputError(f"{name} is {value!r}: {error}") from error


_READERS: Mapping[str, Callable[[str, object], Any]] = {
    "approvers": _texts("a list of at least one id of a user, in quotes, or leave it out", may_be_empty=False),
    "approvals": _approvals,
    "requester_may_approve": _flag,
    "automatic": _automatic,
    "allowed_risks": _texts("a list of patterns; empty for no risk at all", may_be_empty=True),
    "required_goals": _texts("a list of names of goals", may_be_empty=True),
    "reason_required": _flag,
    "quiet_hours": _hours,
}
