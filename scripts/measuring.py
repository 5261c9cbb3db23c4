"""What the measuring scripts share: which machine it was, how busy others kept it, and tables."""

import csv
import os
import platform
import resource
import subprocess
import time


def output(*arguments):
    """First line of what a command prints, or `not there`."""
    try:
        told = subprocess.run(arguments, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return "not there"
    return told.splitlines()[0] if told else "not there"


def cpu():
    with open("/proc/cpuinfo") as file:
        names = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
    return f"{len(names)} × {names[0]}" if names else platform.processor()


def commit():
    changed = subprocess.run(["git", "diff", "--quiet", "HEAD", "--", "src", "Cargo.toml"]).returncode != 0
    return output("git", "rev-parse", "--short", "HEAD") + (" with changes" if changed else "")


class Busy:
    """Share of the CPUs that other processes took since the start, from the kernel's counters."""

    def __init__(self):
        self.load = os.getloadavg()[0]
        self.start, self.all, self.own = time.monotonic(), self.read_all(), self.read_own()

    @staticmethod
    def read_all():
        with open("/proc/stat") as file:
            user, nice, system, _, _, irq, softirq, steal, *_ = map(int, file.readline().split()[1:])
        return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")

    @staticmethod
    def read_own():
        usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(usage.ru_utime + usage.ru_stime for usage in usages)

    def told(self):
        others = (self.read_all() - self.all) - (self.read_own() - self.own)
        share = max(0.0, others) / ((time.monotonic() - self.start) * os.cpu_count())
        told = f"load {self.load:.2f} before the first run; others took {100 * share:.0f} % of the CPUs meanwhile"
        return told + ("; **take the wall times as rough**" if share > 0.1 else "")


def machine(command, busy):
    """Lines of a README that say how a result came about."""
    facts = {
        "command": f"`{command}`",
        "commit": commit(),
        "CPU": cpu(),
        "system": f"{platform.system()} {platform.release()}",
        "toolchain": f"{output('rustc', '--version')}; {output('g++', '--version')}; Python {platform.python_version()}",
        "busy": busy.told(),
    }
    return [f"- {name}: {value}" for name, value in facts.items()]


def spaced(number):
    """A whole number with a space between thousands."""
    return f"{number:,.0f}".replace(",", " ")


def write_csv(path, rows):
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def table(header, rows):
    """Lines of a Markdown table."""
    lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
    return ["| " + " | ".join(map(str, line)) + " |" for line in lines]
