"""`cutlass.base_dsl.utils`: only its modules are used."""
