"""Pure decisions: frozen inputs in, a decision with its reason out. No clock, no random, no I/O."""
