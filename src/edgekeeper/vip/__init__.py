"""The vip role: keepalived under supervision, hand-overs that lose nothing, and the truth about who holds a VIP."""
