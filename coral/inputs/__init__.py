"""What comes in from outside: what programs print, what agents and the operator put down, the state of the disk."""
