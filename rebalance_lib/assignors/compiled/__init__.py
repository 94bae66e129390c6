"""The loops over partitions and members, compiled by numba: arrays in, arrays changed in place."""
