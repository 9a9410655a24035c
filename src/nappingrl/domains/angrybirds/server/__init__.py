"""A server and a client of the Science Birds protocol, trial harness and results, and supervised external agents."""
