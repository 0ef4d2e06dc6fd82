"""Writes the bill of materials of the Python packages that Eastwest needs at run time.

``python tools/sbom.py FILE`` writes CycloneDX JSON: every installed package that ``eastwest``
requires, without extras, with version and licence. ``make wheel`` puts it into the wheel below
``.dist-info/sboms`` (PEP 770), beside the bill of the Rust crates, which maturin writes. Exit code
1 where a package does not name its licence.
"""

from __future__ import annotations

import json
import re
import sys
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

#: SPDX identifiers of licences for which packages use other names.
_WORDS = {
    "MIT License": "MIT",
    "3-Clause BSD License": "BSD-3-Clause",
    "ISC License": "ISC",
    "License :: OSI Approved :: MIT License": "MIT",
    "License :: OSI Approved :: Apache Software License": "Apache-2.0",
    "License :: OSI Approved :: ISC License (ISCL)": "ISC",
    "License :: OSI Approved :: Python Software Foundation License": "PSF-2.0",
}
#: Classifier of any BSD licence: all BSD licences are permissive.
_BSD = "License :: OSI Approved :: BSD License"
_SPDX = re.compile(r"[A-Za-z0-9.+-]+")


def _name(text: str) -> str:
    return re.sub(r"[-_.]+", "-", text).lower()


def needed(root: str) -> list[Distribution]:
    """Return installed packages that ``root`` requires, directly or not, without extras."""
    found: dict[str, Distribution] = {}
    waiting = [root]
    while waiting:
        package = distribution(waiting.pop())
        for text in package.requires or []:
            wanted = Requirement(text)
            name = _name(wanted.name)
            if name not in found and (
                wanted.marker is None or wanted.marker.evaluate({"extra": ""})
            ):
                found[name] = distribution(name)
                waiting.append(name)
    return [found[name] for name in sorted(found)]


def licence(package: Distribution) -> dict[str, Any] | None:
    """Return a package's licence in the form of CycloneDX; None if the package names none."""
    said = package.metadata.get_all("License-Expression")
    if said:
        return {"expression": said[0]}
    words = list(package.metadata.get_all("License") or [])
    words += package.metadata.get_all("Classifier") or []
    for word in words:
        known = _WORDS.get(word)
        if known or (_SPDX.fullmatch(word) and word.upper() != "UNKNOWN"):
            return {"license": {"id": known or word}}
    return {"license": {"name": "BSD"}} if _BSD in words else None


def bill(root: str = "eastwest") -> dict[str, Any]:
    """Return the bill of materials of a package, without itself."""
    components = []
    for package in needed(root):
        name, found = _name(package.metadata["Name"]), licence(package)
        components.append(
            {
                "type": "library",
                "bom-ref": f"pkg:pypi/{name}@{package.version}",
                "name": name,
                "version": package.version,
                "scope": "required",
                "licenses": [found] if found else [],
                "purl": f"pkg:pypi/{name}@{package.version}",
            }
        )
    version = distribution(root).version
    own = {
        "type": "library",
        "name": root,
        "version": version,
        "purl": f"pkg:pypi/{root}@{version}",
    }
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": own},
        "components": components,
    }


def main() -> None:
    """Write the bill of materials to the file in the arguments."""
    if len(sys.argv) != 2:
        raise SystemExit("usage: python tools/sbom.py FILE")
    made = bill()
    without = [each["name"] for each in made["components"] if not each["licenses"]]
    if without:
        raise SystemExit(f"packages without a licence in their metadata: {', '.join(without)}")
    path = Path(sys.argv[1])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
