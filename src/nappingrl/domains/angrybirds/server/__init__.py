"""The Science Birds protocol server and its evaluation harness."""
