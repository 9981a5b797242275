"""The live report on a web page of its own: who may read it, what is read of the store, and how it is answered."""
