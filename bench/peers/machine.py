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


class Others:
    """The share of the CPUs' time that went to others since this was made: other processes, and
    other machines on the host. `pids`: this process's children that run on; ended ones count."""

    def __init__(self, pids: list[int]) -> None:
        self.pids = pids
        self.begin = self._ticks()

    def share(self) -> float:
        total, busy, ours = (b - a for a, b in zip(self.begin, self._ticks()))
        return max(0.0, busy - ours) / max(1.0, total)

    def _ticks(self) -> tuple[float, float, float]:
        """All, not idle, and used by this process and its children."""
        # user nice system idle iowait irq softirq steal; guest time is within user's
        all_kinds = [int(word) for word in read("/proc/stat").split("\n", 1)[0].split()[1:9]]
        busy = sum(all_kinds) - all_kinds[3] - all_kinds[4]
        times = os.times()
        ours = os.sysconf("SC_CLK_TCK") * (
            times.user + times.system + times.children_user + times.children_system)
        for pid in self.pids:
            # After the name, which may hold spaces: user and system ticks are fields 14 and 15.
            fields = read(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()
            ours += int(fields[11]) + int(fields[12])
        return sum(all_kinds), busy, ours
