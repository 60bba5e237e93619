"""Arguments of calls: what each becomes in a signature, what the traced function sees, what native code gets."""
