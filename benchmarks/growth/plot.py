"""Lines over logarithmic axes, as SVG. Pure."""

import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 300, 200  # of a panel
LEFT, RIGHT, TOP, BOTTOM = 44, 12, 14, 38  # around its plot
ACROSS = 3
LEGEND_LINE = 14
COLORS = ("#1f6feb", "#d1570a", "#2da44e", "#8250df", "#bf3989")


def short(number):
    """1,000 is 1k, 1,024 is itself."""
    for unit, ending in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= unit and number % unit == 0:
            return f"{number / unit:g}{ending}"
    return f"{number:,g}"


def ticks(low, high, most=7):
    """Powers of ten from `low` to `high`; of 1, 2 and 5 times them where there are few."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    fine = [step * 10.0 ** decade for decade in decades for step in (1, 2, 5)]
    inside = [tick for tick in fine if low * 0.999 <= tick <= high * 1.001]
    if len(inside) <= most:
        return inside
    return [10.0 ** decade for decade in decades if low * 0.999 <= 10.0 ** decade <= high * 1.001]


def scale(low, high, begin, end):
    """A function from a value to a place."""
    span = math.log(high / low) or 1.0
    return lambda value: begin + (end - begin) * math.log(value / low) / span


def panel(title, lines, bounds):
    """The elements of one panel at the origin. `lines`: [[(x, y)]]; `bounds`: of y."""
    xs = [x for line in lines for x, _ in line]
    across = scale(min(xs), max(xs), LEFT, WIDTH - RIGHT)
    up = scale(*bounds, HEIGHT - BOTTOM, TOP)
    for tick in ticks(*bounds):
        yield f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{up(tick):.1f}" y2="{up(tick):.1f}" stroke="#d0d7de"/>'
        yield f'<text x="{LEFT - 5}" y="{up(tick) + 3.5:.1f}" text-anchor="end">{short(tick)}</text>'
    for x in sorted(set(xs)):
        yield f'<text x="{across(x):.1f}" y="{HEIGHT - BOTTOM + 14}" text-anchor="middle">{short(x)}</text>'
    yield f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - BOTTOM + 29}" text-anchor="middle" font-weight="bold">{escape(title)}</text>'
    for line, color in zip(lines, COLORS):
        places = [(across(x), up(y)) for x, y in line]
        yield f'<polyline fill="none" stroke="{color}" stroke-width="1.8" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in places)}"/>'
        yield from (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.6" fill="{color}"/>' for x, y in places)


def legend(names):
    """The elements of a legend at the origin, one name below the other."""
    for number, (name, color) in enumerate(zip(names, COLORS)):
        at = LEGEND_LINE * number + 10
        yield f'<line x1="{LEFT}" x2="{LEFT + 22}" y1="{at}" y2="{at}" stroke="{color}" stroke-width="2.5"/>'
        yield f'<text x="{LEFT + 28}" y="{at + 4}" font-size="12">{escape(name)}</text>'


def legend_height(groups):
    """The same for all, so that panels side by side stand level."""
    return LEGEND_LINE * max(len(names) for names, _ in groups) + 6


def places(groups):
    """[(x, y)] of the groups, from left to right while they fit, and the size of all: (width, height)."""
    found, at, top, deep, width = [], 0, 0, 0, 0
    for _, panels in groups:
        across = min(ACROSS, len(panels))
        if at + across > ACROSS:
            at, top, deep = 0, top + deep, 0
        found.append((WIDTH * at, top))
        at += across
        width = max(width, WIDTH * at)
        deep = max(deep, legend_height(groups) + HEIGHT * math.ceil(len(panels) / ACROSS))
    return found, (width, top + deep)


def group(names, panels, below):
    """The elements of a group at the origin: its legend, and `below` it panels that have the same y axis."""
    ys = [y for _, lines in panels for line in lines for _, y in line]
    bounds = (min(ys) / 1.15, max(ys) * 1.15)
    yield from legend(names)
    for number, (title, lines) in enumerate(panels):
        yield f'<g transform="translate({WIDTH * (number % ACROSS)} {below + HEIGHT * (number // ACROSS)})">'
        yield from panel(title, lines, bounds)
        yield "</g>"


def svg(groups):
    """`groups`: [(names of the lines of every panel, with their units, [(title, [[(x, y)] of a name])])]."""
    corners, (width, height) = places(groups)
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
           'font-family="sans-serif" font-size="10" fill="#24292f">')
    yield f'<rect width="{width}" height="{height}" fill="#ffffff"/>'
    for (x, y), (names, panels) in zip(corners, groups):
        yield f'<g transform="translate({x} {y})">'
        yield from group(names, panels, legend_height(groups))
        yield "</g>"
    yield "</svg>"
