"""What makes an assignment right, and which of two is better: counted anew, from the definition alone."""

from __future__ import annotations

from itertools import combinations

import highspy

from rebalance_lib.assignors import Assignment
from tests.assignors.groups import Case


def is_valid(case: Case, assignment: Assignment) -> bool:
    """Each partition that somebody wants has one owner, who subscribes to its topic; all members are there."""
    given = [partition for partitions in assignment.values() for partition in partitions]
    wanted = {topic for one in case.members.values() for topic in one.topics}
    there = {(topic, n) for topic, count in case.partitions.items() if topic in wanted for n in range(count)}
    subscribed = all(t in case.members[member].topics for member, owned in assignment.items() for t, _ in owned)
    return sorted(given) == sorted(there) and subscribed and assignment.keys() == case.members.keys()


def score(assignment: Assignment) -> int:
    """The balance score: the differences in size, over all pairs of members."""
    return sum(abs(len(one) - len(other)) for one, other in combinations(assignment.values(), 2))


def owners(case: Case) -> dict[tuple[str, int], str]:
    """Who had each partition, could still have it, and is alone to say so in the latest generation."""
    claims: dict[tuple[str, int], list[tuple[int, str]]] = {}
    for member, one in case.members.items():
        for partition in one.owned:
            claims.setdefault(partition, []).append((one.generation, member))
    latest = {}
    for (topic, number), claimed in claims.items():
        generation, member = max(claimed)
        alone = [g for g, _ in claimed].count(generation) == 1
        if alone and topic in case.members[member].topics and number < case.partitions.get(topic, 0):
            latest[topic, number] = member
    return latest


def changes_of_hands(case: Case, assignment: Assignment) -> int:
    """How many partitions are with another member than the one that had them and could keep them."""
    return sum(partition not in assignment[member] for partition, member in owners(case).items())


def judged(case: Case, assignment: Assignment) -> tuple[int, int]:
    """Less is better: balance first, then movement."""
    return score(assignment), changes_of_hands(case, assignment)


def optimum(case: Case) -> tuple[int, int]:
    """The best that any assignment can reach, by an integer program.

    The least sum of squares of sizes is also the least balance score, and with it goes one vector of sizes up to their
    order. A member's k-th partition costs 2 k - 1, so that they add up to squares; all changes of hands together cost
    less than 1.
    """
    program = highspy.Highs()
    program.silent()
    program.setOptionValue("mip_rel_gap", 0.0)
    had = owners(case)
    partitions = [(topic, n) for topic, count in case.partitions.items() for n in range(count)]
    has = {
        (partition, member): program.addBinary()
        for partition in partitions
        for member, one in case.members.items()
        if partition[0] in one.topics
    }
    small = 1 / (len(partitions) + 1)
    costs = []
    for partition in partitions:
        those = [(member, variable) for (p, member), variable in has.items() if p == partition]
        if those:
            program.addConstr(program.qsum(variable for _, variable in those) == 1)
        costs += [small * variable for member, variable in those if had.get(partition, member) != member]
    places = {}
    for member in case.members:
        own = [variable for (_, m), variable in has.items() if m == member]
        places[member] = [program.addBinary() for _ in own]
        costs += [(2 * k + 1) * place for k, place in enumerate(places[member])]
        if own:
            program.addConstr(program.qsum(own) == program.qsum(places[member]))
    if not has:
        return 0, 0
    program.minimize(program.qsum(costs))
    values = program.getSolution().col_value
    found: Assignment = {member: [] for member in case.members}
    for (partition, member), variable in has.items():
        if values[variable.index] > 0.5:
            found[member].append(partition)
    assert is_valid(case, found)
    return judged(case, found)
