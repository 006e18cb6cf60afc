"""Fetch GitHub's own OpenAPI document out of the npm package that carries it, and hold it against its checksum.

The package has 15 documents in 28 MB and is not installed; the one that tests read is taken out of it. Run by `make peers`.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

PACKAGE = "@octokit/openapi@23.0.2"
MEMBER = "package/generated/api.github.com.json"
SHA256 = "829b4bebb19a53133289f7b0bc819f4f1118115821db2ca9f25e9ee995a7da2a"
TARGET = Path(__file__).parent / "documents" / "api.github.com.json"


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        command = ["npm", "pack", PACKAGE, "--silent", "--fetch-retries=1", "--pack-destination", folder]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        (archive,) = Path(folder).glob("*.tgz")
        with tarfile.open(archive) as package:
            member = package.extractfile(MEMBER)
            assert member is not None
            document = member.read()
    if hashlib.sha256(document).hexdigest() != SHA256:
        print(f"{MEMBER} of {PACKAGE} is not the document that the tests were written for.", file=sys.stderr)
        return 1
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_bytes(document)
    return 0


if __name__ == "__main__":
    sys.exit(main())
