"""What machine this is, and how busy others keep it. Linux only, as wok is."""

from __future__ import annotations

import os
import re

NOISE_WORDS = {"intel", "amd", "processor", "cpu", "core", "gen"}


def read(path: str) -> str:
    with open(path) as file:
        return file.read()


def describe(kernels: str) -> dict:
    """The machine's facts, and a short name for files. `kernels`: those that wok chose here."""
    info = read("/proc/cpuinfo")
    cpu = re.search(r"^model name\s*:\s*(.*)$", info, re.M)[1]
    flags = re.search(r"^flags\s*:(.*)$", info, re.M)
    is_virtual = bool(flags) and "hypervisor" in flags[1].split()
    count = len(os.sched_getaffinity(0))
    clean = re.sub(r"\(\w+\)|@.*|\d+(th|st|nd|rd) ", " ", cpu.lower())
    words = [word for word in re.findall(r"[a-z0-9]+", clean) if word not in NOISE_WORDS]
    unit = "vcpu" if is_virtual else "cpu"
    kib = int(re.search(r"MemTotal:\s*(\d+)", read("/proc/meminfo"))[1])
    return {
        "slug": "-".join(words + [kernels, f"{count}{unit}"]),
        "cpu": re.sub(r"\(\w+\)", "", cpu),
        "cpus": f"{count} {'virtual ' if is_virtual else ''}CPUs",
        "kernels": kernels,
        "memory_gib": round(kib / 2**20),
    }


def load() -> float:
    """Runnable threads, averaged over the last minute."""
    return os.getloadavg()[0]


class Steal:
    """The share of the CPUs' time that the hypervisor gave to others since this was made."""

    def __init__(self) -> None:
        self.begin = self._times()

    def share(self) -> float:
        used = [b - a for a, b in zip(self.begin, self._times())]
        return used[7] / max(1, sum(used))

    @staticmethod
    def _times() -> list[int]:
        # user nice system idle iowait irq softirq steal; guest time is within user's
        return [int(word) for word in read("/proc/stat").split("\n", 1)[0].split()[1:9]]
