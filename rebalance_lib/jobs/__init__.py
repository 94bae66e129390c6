"""The programs that spark-submit runs: the only package that imports pyspark."""
