"""The commented starter config that ``edgekeeper init`` writes."""

from __future__ import annotations

from typing import Final

STARTER: Final = """\
# edgekeeper.yaml: what this node runs, and how. `edgekeeper check` says what is wrong with it and
# what each default is (`--defaults`); `edgekeeper schema` prints a JSON schema for your editor.

# node: edge-a                     # this node's name; the host name when not said
# nodes:                           # where there are several: all of them, and their ops listeners
#   edge-a: {address: 192.0.2.11, ops: "https://192.0.2.11:8084"}
#   edge-b: {address: 192.0.2.12, ops: "https://192.0.2.12:8084"}

# run_dir: /run/edgekeeper         # sockets, pid and log files; may be lost at a reboot
# state_dir: /var/lib/edgekeeper   # generations, journal, budgets; must survive a reboot

ops:
  listen: 127.0.0.1:8084           # health, status, metrics; anything but loopback needs token_file or mTLS
  # token_file: /etc/edgekeeper/ops.token

dns:
  listen: ["0.0.0.0:53", "[::]:53"]
  acl:                             # who is answered; an open resolver must be asked for by name
    - 127.0.0.0/8
    - "::1/128"
    - 192.0.2.0/24

  members:                         # who answers: exactly one of static, file, dns
    static:                        # [name=]host[:port]; port 5353 when not said
      - ns-a=192.0.2.21:5353
      - ns-b=192.0.2.22:5353
    # file: /etc/edgekeeper/members.yaml
    # dns: {name: _dns._udp.resolvers.example., type: SRV}

  proxy_protocol: "off"            # off, plain, or {secret_file: ...}: what your members expect
  purpose: resolver                # resolver or authoritative: which question tells a member's health
  # health: {name: health.example., type: TXT, interval: 1s, timeout: 1s, fall: 2, rise: 2}
  # identity: observe              # require: a member must say its name in the health answer
  # retry: normal                  # a query that times out is asked once more elsewhere (dnsdist 2.x)

  # zones: {static: [example.]}    # names that go to the authoritative pool
  # tls: {dir: /etc/edgekeeper/tls, dot: ["0.0.0.0:853"], doh: ["0.0.0.0:443"]}

# probe:                           # what `edgekeeper probe` asks when no target is named
#   targets: ["dns://192.0.2.53/health.example?type=TXT"]
"""
