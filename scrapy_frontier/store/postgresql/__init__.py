"""PostgreSQL as the store's database: see `store.database` for the contract."""
