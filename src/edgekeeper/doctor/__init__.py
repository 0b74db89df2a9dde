"""The doctor: what will hurt you next time. Collected once (effects), judged by pure checks, told worst first.

``collect`` -> ``facts`` -> ``checks`` (by ``examine``) -> ``report`` or ``sarif``. Each check has its page beside it.
"""
