"""The store: schema, migrations, the one writer, and readers. What differs between databases is in one place each."""
