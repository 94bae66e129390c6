"""Plans of every legal shape, for Hypothesis."""

from hypothesis import strategies as st

from rebalance_lib.plan import Plan
from rebalance_lib.topology import TopicPartition

topics = st.text("abcXYZ019._-", min_size=1, max_size=12).filter(lambda name: name not in {".", ".."})
partitions = st.builds(TopicPartition, topics, st.integers(0, 2**31 - 1) | st.integers(0, 3))
brokers = st.integers(0, 2**31 - 1) | st.integers(0, 9)
replica_lists = st.lists(brokers, min_size=1, max_size=5, unique=True)
log_dirs = st.just("any") | st.text(st.characters(exclude_categories=["Cs"]), max_size=8).map("/{}".format)


@st.composite
def entries(draw):
    """An entry as a dict of JSON values, with or without log dirs."""
    topic, partition = draw(partitions)
    replicas = draw(replica_lists)
    entry = {"topic": topic, "partition": partition, "replicas": replicas}
    if draw(st.booleans()):
        entry["log_dirs"] = draw(st.lists(log_dirs, min_size=len(replicas), max_size=len(replicas)))
    return entry


entry_lists = st.lists(entries(), max_size=8, unique_by=lambda entry: (entry["topic"], entry["partition"]))
assignments = st.dictionaries(partitions, replica_lists, max_size=8)
plans = assignments.map(Plan.from_assignment)
