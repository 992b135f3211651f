"""Engine: docker or podman, driven by its command line; fixed flags, lists of arguments, never a shell."""

import json
import math
import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from execution.runtimes import owner

KINDS = ("podman", "docker")
PREFIX = "placet-"
LABEL = "dev.placet.owner"
PATIENCE = 10.0  # seconds for any one question to the engine

# What every container gets, whatever its manifest says; a manifest has no field that could loosen it.
WALLS = (
    *("--rm", "-i", "--network", "none", "--read-only", "--cap-drop", "ALL"),
    *("--security-opt", "no-new-privileges", "--user", "65532:65532"),
    *("--tmpfs", "/tmp:rw,noexec,nosuid,nodev,size=16m,mode=1777"),
    *("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024", "--ulimit", "core=0:0"),
    *("--log-driver", "none", "--pull", "never", "--no-healthcheck", "--stop-timeout", "1"),
)
# Podman leaves more of a read-only container writable than docker does, and gives an image's volumes real disk.
_PODMAN_WALLS = ("--read-only-tmpfs=false", "--image-volume", "ignore")
_GRACE = 5  # seconds after the tool's time in which podman itself ends a container that nobody was left to end

# What the engine's client may know of our surroundings: where its daemon and its files are.
_SURROUNDINGS = (
    *("PATH", "HOME", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "DBUS_SESSION_BUS_ADDRESS"),
    *("DOCKER_HOST", "DOCKER_CONFIG", "DOCKER_CONTEXT", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH"),
    *("CONTAINER_HOST", "CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF"),
)
_INITS = ("/usr/libexec/podman/catatonit", "/usr/lib/podman/catatonit", "/usr/local/libexec/podman/catatonit")


class EngineMissing(Exception):
    """No engine answers, or the one that does cannot keep a limit that we rely on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One container to run: what its manifest may choose, and nothing else."""

    name: str
    image: str
    command: Sequence[str]
    memory: str
    cpus: float
    pids: int
    variables: Iterable[str]  # names only: the values travel in the client's environment
    seconds: float


@dataclass(frozen=True, slots=True)
class Engine:
    """A command line that answered, and how it must be addressed."""

    kind: str
    path: str

    def run(self, order: Order) -> list[str]:
        """The command that runs a container to its end, attached to our pipes."""
        return [
            *self._command("run"),
            *WALLS,
            *self._own_walls(order.seconds),
            *("--memory", order.memory, "--memory-swap", order.memory),
            *("--cpus", f"{order.cpus:g}", "--pids-limit", str(order.pids)),
            *("--name", order.name, "--label", f"{LABEL}={owner.mark()}"),
            *(word for name in order.variables for word in ("--env", name)),
            order.image,
            *order.command,
        ]

    def kill(self, name: str) -> bool:
        return self._ask("kill", "--signal", "KILL", name) is not None

    def remove(self, name: str) -> bool:
        return self._ask("rm", "--force", "--volumes", name) is not None

    def has_image(self, image: str) -> bool:
        return self._ask("image", "inspect", "--format", "{{.Id}}", image) is not None

    def strays(self) -> list[str]:
        """Containers of ours whose process has ended."""
        names = (self._ask("ps", "--all", "--filter", f"label={LABEL}", "--format", "{{.Names}}") or "").split()
        mark = '{{index .Config.Labels "' + LABEL + '"}}'
        return [
            name
            for name in names
            if name.startswith(PREFIX)
            and owner.is_gone((self._ask("container", "inspect", "--format", mark, name) or "").strip())
        ]

    def check(self) -> None:
        """EngineMissing unless the engine answers and can keep every limit."""
        told = self._ask("info", "--format", "json" if self.kind == "podman" else "{{json .}}")
        if told is None:
            raise EngineMissing(f"{self.path} does not answer")
        try:
            lacks = _lacks(self.kind, json.loads(told))
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise EngineMissing(f"{self.path} does not say what it can limit") from error
        if lacks:
            raise EngineMissing(f"{self.path} cannot limit {lacks}")

    def _command(self, *words: str) -> list[str]:
        # As root, podman's other runtime refuses these limits on kernels without the newer control groups.
        runtime = ("--runtime", "runc") if self.kind == "podman" and os.geteuid() == 0 and shutil.which("runc") else ()
        return [self.path, *runtime, *words]

    def _own_walls(self, seconds: float) -> list[str]:
        if self.kind == "docker":
            return ["--init"]
        init = ["--init"] if shutil.which("catatonit") or any(map(os.path.exists, _INITS)) else []
        return [*init, *_PODMAN_WALLS, "--timeout", str(math.ceil(seconds) + _GRACE)]

    def _ask(self, *words: str) -> str | None:
        """What the engine answers; None if it says no, or nothing in time."""
        try:
            answer = subprocess.run(
                self._command(*words),
                env=surroundings(),
                cwd="/",
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=PATIENCE,
                text=True,
                errors="replace",
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return answer.stdout if answer.returncode == 0 else None


def find(wanted: str = "") -> Engine:
    """The engine that was asked for, or the first that answers; they keep the same walls."""
    if wanted and Path(wanted).name not in KINDS:
        raise EngineMissing(f"PLACET_CONTAINER_ENGINE must name one of {', '.join(KINDS)}, not {wanted}")
    reasons = []
    for name in (wanted,) if wanted else KINDS:
        path = shutil.which(name)
        if path is None:
            reasons.append(f"there is no {name}")
            continue
        engine = Engine(Path(name).name, path)
        try:
            engine.check()
        except EngineMissing as error:
            reasons.append(str(error))
        else:
            return engine
    raise EngineMissing("; ".join(reasons))


def surroundings() -> dict[str, str]:
    """The environment of the engine's client: none of our keys, addresses or passwords."""
    return {name: os.environ[name] for name in _SURROUNDINGS if name in os.environ}


def _lacks(kind: str, told: Mapping[str, Any]) -> str:
    """Which limits this engine would leave out, perhaps with no more than a warning."""
    if kind == "docker":
        limits = {"MemoryLimit": "memory", "CpuCfsQuota": "processor time", "PidsLimit": "processes"}
        return ", ".join(word for name, word in limits.items() if not told.get(name))
    host = told["host"]
    controllers = host.get("cgroupControllers") or ()
    is_powerless = host["security"]["rootless"] and host["cgroupVersion"] == "v1"
    return ", ".join(name for name in ("memory", "cpu", "pids") if is_powerless or name not in controllers)
