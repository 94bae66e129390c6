"""What the triggerer runs while the sensor waits."""
