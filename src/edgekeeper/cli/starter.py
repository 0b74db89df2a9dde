"""The commented starter config that ``edgekeeper init`` writes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

_HEAD: Final = """\
# edgekeeper.yaml: what this node runs, and how. `edgekeeper check` says what is wrong with it and
# what each default is (`--defaults`); `edgekeeper schema` prints a JSON schema for your editor.

"""

_NODES_UNSAID: Final = """\
# node: edge-a                     # this node's name; the host name when not said
# nodes:                           # where there are several: all of them, and their ops listeners
#   edge-a: {address: 192.0.2.11, ops: "https://192.0.2.11:8084"}
#   edge-b: {address: 192.0.2.12, ops: "https://192.0.2.12:8084"}
"""

_NODES: Final = """\
node: edge-a                       # this node's name
nodes:                             # all of them, in the same order on each: it decides on which node each VIP rests
  edge-a: {address: 192.0.2.11}    # with ops addresses they hear each other; `edgekeeper init --pair edge-a=ADDRESS,edge-b=ADDRESS`
  edge-b: {address: 192.0.2.12}    # writes the files of all nodes, with the certificates that this takes
"""

_FOLDERS: Final = """
# run_dir: /run/edgekeeper         # sockets, pid and log files; may be lost at a reboot
# state_dir: /var/lib/edgekeeper   # generations, journal, budgets; must survive a reboot
"""

_OPS: Final = """
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

  members:                         # who answers: exactly one of static, file, dns, endpointslice
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

_HMAC: Final = "  # hmac_key_file: /etc/edgekeeper/vrrp-{vrid}.key   # signs the adverts; keepalived 2.4 on, a note else"

_VIP: Final = f"""
vip:
  interface: eth0                  # where the VIPs live
  vips:                            # the same on all nodes, in the same order: it decides on which node each rests
    - name: dns
      address: 192.0.2.53/24
      vrid: 53                     # the same on all nodes, unique in the network segment, never changed
      probe: {{dns: health.example., server: "127.0.0.1:53"}}   # this node's own service, never through the VIP; or tcp:, http:, none

  # advert: 1s                     # a dead node's VIPs are missed after three of them
  # preempt: false                 # true: a VIP goes back by itself to the node with the higher priority; a duration: after it
{_HMAC}
  # prober: {{every: 200ms, timeout: 400ms, fall: 2, rise: 5}}   # how a dead or hung service is noticed
  # budget: 5s                     # a config that takes longer to move a VIP away from a dead service is refused
  # handover: 10s                  # how long an address may be kept covered while it is handed over
  # on_event: [/usr/local/bin/tell]   # a program that is given each transition as JSON
  # engine: {{binary: keepalived, stop_timeout: 15s}}
"""

_LB: Final = """
lb:
  services:
    - name: k8s-api
      kind: kube-apiserver         # or tcp, http
      listen: 192.0.2.60:6443      # may be a VIP that this node does not hold at the moment
      members:                     # who answers: exactly one of static, file, dns, endpointslice, nodes
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

_WATCH: Final = """
watch:
  - name: web
    docker: web                    # whose log is followed and who is restarted; or file:, journald:, command: with a cure: of its own
    fingerprints:                  # a line that arms; {regex: ...} and {level: warning} narrow it
      - "upstream is wedged"
    probe: "http://192.0.2.11:8080/"   # what confirms: three failed rounds alone, two after a line. Ask as clients do, not through lo
    # untrusted_after: [" path="]  # what stands behind it in a line was written by clients
    # cure: [docker]               # steps, the lightest first: docker, {systemd: UNIT}, {command: [...]}, {http: URL}
    # budget: {burst: 3, every: 60s, per_hour: 6, cooldown: 0s}
    # guard: {reachable: ["tcp://192.0.2.1:443"], maintenance: [{days: [sun], from: "02:00", to: "04:00"}]}
    # shadow: true                 # decide and tell, do nothing
  # - {name: mesh-proxy, preset: netbird-proxy, docker: netbird-proxy, probe: "tls://192.0.2.11:443?sni=git.example"}
"""

_EXPOSE: Final = """
# kubernetes:                      # in a pod: its service account; else say the file
#   kubeconfig: /etc/edgekeeper/kubeconfig
#   servers: ["https://192.0.2.31:6443", "https://192.0.2.32:6443"]   # each by itself, so that a dead one holds nothing up
expose:
  owner: home                      # written into each service; two edgekeepers that share a mesh need two. Never change it
  cluster: default
  netbird:
    url: "https://netbird.example"
    token_file: /etc/edgekeeper/netbird.token   # the token of an admin; a reader's is enough for `expose plan`
    router_group: routers          # the group of the routing peers that reach the targets
  targets:                         # where each ingress class leads; default: is for all others
    traefik: {service: traefik/traefik}
  service_cidr: 10.96.0.0/12       # the network of the cluster's Services
  listen_port: 443                 # the port that the proxy itself listens on (NB_PROXY_ADDRESS), not the public one
  # label: edgekeeper.io/public=true   # Ingress objects with it are published
  # sources: {ingress: true, tlsroute: true, httproute: true}
  # policy: sync                   # or upsert-only (nothing deleted), create-only (nothing changed either)
  # prove: {addresses: ["192.0.2.11:443"]}   # where the proxy is reached from outside, for the proof after each write
  # brake: {absent_lists: 3, grace: 5m, disabled: 10m, share: 30}
"""

_PROBE: Final = """
probe:                             # the outage meter: `edgekeeper probe` shows it, `edgekeeper run` asks all day and tells in journal and metrics
  targets: ["dns://192.0.2.53/health.example?type=TXT", "https://edge.example/ping"]   # tcp://, tls://, icmp:// too; never this node's own address
  every: 1s                        # an outage is known to within two periods
  timeout: 1s                      # more hides black holes
  # warm: true                     # a kept connection too: it shows a session that is pinned to something dead
  # alarm: 5s
  # record: {size: 64MiB, files: 4}   # every question, for `edgekeeper report`
"""

_REPORT: Final = """
# report:                          # who is who in your logs, for `edgekeeper report`
#   classes: {public: [127.0.0.1/32], lan: [192.0.2.0/24]}   # by the address that the proxy sees
"""

SECTIONS: Final = {"dns": _DNS, "vip": _VIP, "lb": _LB, "watch": _WATCH, "expose": _EXPOSE, "probe": _PROBE}
"""The sections of the roles that a starter can be written for."""

OPS_PORT: Final = 8084
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_YAML_WORDS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}


@dataclass(frozen=True, slots=True)
class Among:
    """A node among others that hear each other: name to address of all, and the folder where its files will lie."""

    node: str
    nodes: Mapping[str, str]
    folder: str


def starter(roles: Sequence[str], among: Among | None = None) -> str:
    """A commented config with these roles, in the order of ``SECTIONS``; for one of several nodes where it is ``among`` them."""
    sections = {name: text for name, text in SECTIONS.items() if name in roles}
    if among is None:
        nodes, ops = (_NODES if "vip" in sections else _NODES_UNSAID), _OPS
    else:
        nodes, ops = _named(among), _guarded(among)
        if "vip" in sections:
            sections["vip"] = _VIP.replace(_HMAC, f"  hmac_key_file: {among.folder}/vrrp-{{vrid}}.key   # signs the adverts; keepalived 2.4 on, a note else")
    return _HEAD + nodes + _FOLDERS + ops + "".join(sections.values()) + _REPORT


def _named(among: Among) -> str:
    lines = [f"  {_word(name)}: {{address: {json.dumps(address)}, ops: {json.dumps(f'https://{at(address)}')}}}" for name, address in among.nodes.items()]
    head = f"node: {_word(among.node)}\nnodes:                             # all of them, in the same order on each; what each VIP rests on follows from it\n"
    return head + "\n".join(lines) + "\n"


def _guarded(among: Among) -> str:
    folder = among.folder
    return f"""
ops:                               # health, status, metrics; the other nodes ask here who holds what
  listen: "{at(among.nodes[among.node])}"
  certificate: {folder}/ops.crt    # also shown to the other nodes
  key: {folder}/ops.key
  client_ca: {folder}/ops-ca.crt   # who is let in
  peer_ca: {folder}/ops-ca.crt     # whom it believes
"""


def at(address: str) -> str:
    """Host and port of a node's ops listener."""
    return f"[{address}]:{OPS_PORT}" if ":" in address else f"{address}:{OPS_PORT}"


def _word(name: str) -> str:
    """A name as YAML reads it back as text."""
    return name if _PLAIN.fullmatch(name) and name.lower() not in _YAML_WORDS else json.dumps(name)
