"""What a store has to say: reads the ledger and what it refers to, and writes nothing."""
