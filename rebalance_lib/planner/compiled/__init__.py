"""The loops over replicas, compiled by numba: arrays in, arrays changed in place."""
