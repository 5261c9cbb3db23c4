"""Small pictures as SVG: bars and lines over a logarithmic axis."""

import math
from html import escape

import measuring

COLOURS = ["#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf"]
FONT = 'font-family="sans-serif" font-size="12"'


def label(x, y, words, anchor="start", colour="#222"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" {FONT}>{escape(str(words))}</text>'


def line(x1, y1, x2, y2, colour="#ddd"):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def save(path, width, height, parts):
    with open(path, "w") as file:
        file.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}">\n')
        file.write(f'<rect width="{width}" height="{height}" fill="white"/>\n')
        file.write("\n".join(parts) + "\n</svg>\n")


class Axis:
    """Logarithmic, over whole decades, from pixel `start` to pixel `end`."""

    def __init__(self, values, start, end):
        self.low, self.high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)) + 1e-9)
        self.start, self.end = start, end

    def at(self, value):
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def grid(self, top, bottom):
        for power in range(self.low, self.high + 1):
            x = self.at(10**power)
            yield line(x, top, x, bottom)
            yield label(x, bottom + 15, measuring.spaced(10**power), "middle")


def bars(path, title, groups):
    """Horizontal bars; `groups` maps the name of a group to its bars, a value by name."""
    names = list(dict.fromkeys(name for group in groups.values() for name in group))
    left, right, row = 190, 580, 16
    bottom = 40 + sum(row * (len(group) + 1.5) for group in groups.values())
    axis = Axis([value for group in groups.values() for value in group.values()], left, right)
    parts = [label(10, 20, title), *axis.grid(32, bottom)]
    y = 40
    for group, values in groups.items():
        y += row
        parts.append(label(10, y, group))
        for name, value in values.items():
            colour = COLOURS[names.index(name) % len(COLOURS)]
            width = axis.at(value) - left
            parts.append(f'<rect x="{left}" y="{y - 12}" width="{width:.1f}" height="{row - 3}" fill="{colour}"/>')
            parts.append(label(left - 6, y, name, "end"))
            parts.append(label(left + width + 4, y, f"{value:.0f}"))
            y += row
        y += row / 2
    save(path, right + 60, bottom + 25, parts)


def lines(path, title, words, series, mark):
    """Shares over a logarithmic axis; `series` maps a name to its points (x, share); `mark` is a share to point out."""
    left, right, top, bottom = 50, 520, 40, 340
    axis = Axis([x for points in series.values() for x, _ in points], left, right)
    height = lambda share: bottom - min(share, 1.1) / 1.1 * (bottom - top)
    parts = [label(10, 20, title), *axis.grid(top, bottom), label((left + right) / 2, bottom + 35, words, "middle")]
    for share in (0, 0.25, 0.5, 0.75, 1):
        parts.append(line(left, height(share), right, height(share)))
        parts.append(label(left - 6, height(share) + 4, f"{100 * share:.0f} %", "end"))
    parts.append(line(left, height(mark), right, height(mark), "#444"))
    for index, (name, points) in enumerate(series.items()):
        colour = COLOURS[index % len(COLOURS)]
        path_words = " ".join(f"{axis.at(x):.1f},{height(share):.1f}" for x, share in sorted(points))
        parts.append(f'<polyline points="{path_words}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(label(right + 15, top + 18 * (index + 1), name, colour=colour))
    save(path, right + 170, bottom + 45, parts)
