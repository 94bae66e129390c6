"""The pages of rebalances: a list of runs, and each run with its plans, its progress and its record.

They show what is in a run's artifacts; of Airflow's database they use which runs there are, and how they ended.
"""
