"""Facts of the hardware as data: chips, the instructions they have, occupancy."""
