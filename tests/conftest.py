"""What all tests share."""

from hypothesis import settings

# A right answer from a busy machine is still right: nothing here is a timed test.
settings.register_profile("kafka-rebalance", deadline=None)
settings.load_profile("kafka-rebalance")
