"""python examples/container_tool/build.py: makes the image of Digest.Sha256 and the manifest that names it.

No registry is needed: the image is busybox (Debian's package busybox-static) and the script beside this file. Podman
names an image by its digest as soon as it is imported; with docker, push it to a registry of your own first.
"""

import argparse
import io
import subprocess
import tarfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
NAME = "localhost/placet-digest"
APPLETS = ("cut", "sed", "sh", "sha256sum")


def layer(busybox: Path) -> bytes:
    """All that is in the image."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        for source, name in ((busybox, "bin/busybox"), (HERE / "tool.sh", "tool.sh")):
            file = tarfile.TarInfo(name)
            file.size, file.mode = source.stat().st_size, 0o755
            tar.addfile(file, io.BytesIO(source.read_bytes()))
        for applet in APPLETS:
            link = tarfile.TarInfo(f"bin/{applet}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
    return content.getvalue()


def podman(*words: str, given: bytes = b"") -> str:
    return subprocess.run(["podman", *words], input=given, stdout=subprocess.PIPE, check=True).stdout.decode().strip()


def build(manifest: Path, busybox: Path) -> str:
    """Imports the image and writes the manifest; the image's name and digest."""
    podman("import", "--quiet", "-", f"{NAME}:latest", given=layer(busybox))
    image = f"{NAME}@{podman('image', 'inspect', '--format', '{{.Digest}}', f'{NAME}:latest')}"
    manifest.write_text((HERE / "digest.yaml.in").read_text().replace("IMAGE", image))
    return image


if __name__ == "__main__":
    options = argparse.ArgumentParser(description="Makes the image of Digest.Sha256 and its manifest.")
    options.add_argument("--busybox", type=Path, default=Path("/bin/busybox"))
    options.add_argument("--manifest", type=Path, default=HERE / "digest.yaml")
    chosen = options.parse_args()
    print(f"{build(chosen.manifest, chosen.busybox)}\n{chosen.manifest}")  # noqa: T201
