"""`cutlass.base_dsl.runtime`: only its modules are used."""
