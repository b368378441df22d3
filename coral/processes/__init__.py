"""The processes of a run: started, recorded, watched and signalled, and never mistaken for others."""
