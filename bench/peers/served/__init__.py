"""What users of a server see: the same loads on wok and on its peers."""
