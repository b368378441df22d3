"""What was tried: the record, the progress it makes, and the folder it is kept in."""
