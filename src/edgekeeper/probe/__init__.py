"""One question, one Sample: DNS, TCP, TLS and HTTP; the meter that keeps asking; rise and fall."""
