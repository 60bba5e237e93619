"""What stands for modules of CuTe DSL that have another place here; `tilewright.dropin` maps them."""
