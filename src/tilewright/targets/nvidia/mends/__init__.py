"""PTX that assemblers get wrong, written in another way; the table of their faults."""
