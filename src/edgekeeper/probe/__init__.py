"""One question, one Sample: DNS, TCP, TLS, HTTP and ICMP; rise and fall."""
