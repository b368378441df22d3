"""What runs on this machine: started behind a gate, watched, signalled, and never taken for another."""
