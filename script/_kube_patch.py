"""Teaches the sources of Kubernetes 1.20 two API versions that came with 1.21, so that a current client can talk to what is built of them.

``policy/v1`` (PodDisruptionBudget, Eviction) and ``discovery.k8s.io/v1`` (EndpointSlice) are made as versions of the same fields as the
``v1beta1`` that is there. Usage: ``_kube_patch.py TREE``; it ends with a sentence when the tree is not the one that this was written for.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

GROUPS = {"policy": ("policyapi", "policy"), "discovery": ("discovery", "discovery.k8s.io")}
"""A group's folder: how its imports are named in the server's code, and its name in the API."""
PRIORITY = {"policy": 17100, "discovery": 16200}
SERVE = """\tif added := {name}v1.SchemeGroupVersion; apiResourceConfigSource.VersionEnabled(added) {{
\t\tstores, err := p.v1beta1Storage(apiResourceConfigSource, restOptionsGetter)
\t\tif err != nil {{
\t\t\treturn genericapiserver.APIGroupInfo{{}}, false, err
\t\t}}
\t\tdelete(stores, "podsecuritypolicies") // what never left v1beta1
\t\tapiGroupInfo.VersionedResourcesStorageMap[added.Version] = stores
\t}}
"""


def edit(path: Path, *changes: tuple[str, str]) -> None:
    """Replace each text, which must be there exactly once."""
    text = path.read_text(encoding="utf-8")
    for old, new in changes:
        if text.count(old) != 1:
            sys.exit(f"{path} has {old!r} {text.count(old)} times; these are not the sources of Kubernetes 1.20.2")
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")


def second(folder: Path, group: str) -> None:
    """A version v1 beside the v1beta1 in ``folder``."""
    made = folder / "v1"
    shutil.rmtree(made, ignore_errors=True)
    shutil.copytree(folder / "v1beta1", made, ignore=shutil.ignore_patterns("*_test.go", "BUILD", "*prerelease-lifecycle.go"))
    for path in made.glob("*.go"):
        text = path.read_text(encoding="utf-8")
        for old, new in (
            (r"(?m)^package v1beta1\b.*$", "package v1"),
            (rf"(apis?)/{group}/v1beta1", rf"\1/{group}/v1"),
            (rf"k8s\.io\.api\.{group}\.v1beta1", f"k8s.io.api.{group}.v1"),
            (r'Version: "v1beta1"', 'Version: "v1"'),
        ):
            text = re.sub(old, new, text)
        path.write_text(text, encoding="utf-8")


def main() -> None:
    """Patch the tree that is named."""
    tree = Path(sys.argv[1])
    for group, (name, api) in GROUPS.items():
        second(tree / "staging/src/k8s.io/api" / group, group)
        second(tree / "pkg/apis" / group, group)
        beta = f'\t{name}v1beta1 "k8s.io/api/{group}/v1beta1"\n'
        imported = (beta, f'{beta}\t{name}v1 "k8s.io/api/{group}/v1"\n')
        edit(
            tree / "pkg/apis" / group / "install/install.go",
            (
                f'\t"k8s.io/kubernetes/pkg/apis/{group}/v1beta1"\n',
                f'\tv1 "k8s.io/kubernetes/pkg/apis/{group}/v1"\n\t"k8s.io/kubernetes/pkg/apis/{group}/v1beta1"\n',
            ),
            (
                "\tutilruntime.Must(v1beta1.AddToScheme(scheme))\n",
                "\tutilruntime.Must(v1.AddToScheme(scheme))\n\tutilruntime.Must(v1beta1.AddToScheme(scheme))\n",
            ),
            ("SetVersionPriority(v1beta1.SchemeGroupVersion", "SetVersionPriority(v1beta1.SchemeGroupVersion, v1.SchemeGroupVersion"),
        )
        end = "\treturn apiGroupInfo, true, nil\n"
        edit(tree / "pkg/registry" / group / f"rest/storage_{group}.go", imported, (end, SERVE.format(name=name) + end))
        enabled = f"\t\t{name}v1beta1.SchemeGroupVersion,\n"
        edit(tree / "pkg/controlplane/instance.go", imported, (enabled, f"{enabled}\t\t{name}v1.SchemeGroupVersion,\n"))
        listed = f'\t{{Group: "{api}", Version: "v1beta1"}}:'
        better = f'\t{{Group: "{api}", Version: "v1"}}: {{group: {PRIORITY[group]}, version: 15}},\n'
        edit(tree / "cmd/kube-apiserver/app/aggregator.go", (listed, better + listed))
    old = 'Group: "policy", Version: "v1beta1", Kind: "Eviction"'
    edit(tree / "pkg/registry/core/pod/storage/eviction.go", (old, old.replace("v1beta1", "v1")))
    # An eviction of either version is taken, as newer servers do.
    same = "if gvk.GroupVersion() != gv {"
    edit(
        tree / "staging/src/k8s.io/apiserver/pkg/endpoints/handlers/create.go",
        (same, 'if gvk.GroupVersion() != gv && !(gvk.Group == "policy" && gvk.Kind == "Eviction") {'),
    )


if __name__ == "__main__":
    main()
