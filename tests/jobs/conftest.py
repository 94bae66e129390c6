"""Spark in this process: its gateway logs once more while Python shuts down, when nobody can hear it."""

import logging

logging.getLogger("py4j").setLevel(logging.WARNING)
