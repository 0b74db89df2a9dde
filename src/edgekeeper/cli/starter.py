"""The commented starter config that ``edgekeeper init`` writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_HEAD: Final = """\
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
"""

_DNS: Final = """
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
"""

_LB: Final = """
lb:
  services:
    - name: k8s-api
      kind: kube-apiserver         # or tcp, http
      listen: 192.0.2.60:6443      # may be a VIP that this node does not hold at the moment
      members:                     # who answers: exactly one of static, file, dns
        static:                    # [name=]host[:port]; port 6443 for kube-apiserver when not said
          - cp1=192.0.2.31
          - cp2=192.0.2.32
          - cp3=192.0.2.33
      # health: {path: /readyz, interval: 1s, fast_interval: 500ms, timeout: auto, fall: 2, rise: 3}
      # server_tls: {ca_file: /etc/edgekeeper/kube-ca.crt}   # verify who answers the checks

  # stats: 127.0.0.1:8404          # HAProxy's own page, on loopback only
  # hard_stop_after: 15m           # how long a worker of before a reload may keep its connections
  # engine: {binary: haproxy}      # user and group: what its workers become, when edgekeeper is root
"""

_TAIL: Final = """
# probe:                           # what `edgekeeper probe` asks when no target is named
#   targets: ["dns://192.0.2.53/health.example?type=TXT"]
"""

SECTIONS: Final = {"dns": _DNS, "lb": _LB}
"""The sections of the roles that a starter can be written for."""


def starter(roles: Sequence[str]) -> str:
    """A commented config with these roles, in the order of ``SECTIONS``."""
    return _HEAD + "".join(text for name, text in SECTIONS.items() if name in roles) + _TAIL
