"""Loss curves of two runs as SVG. Pure."""

import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 420, 260  # of a panel
LEFT, RIGHT, TOP, BOTTOM = 48, 14, 30, 40  # around its plot
LEGEND = 24
# The first curve is wide and pale, so that it can be seen below an equal one.
STYLES = (("#9ec5fe", 5), ("#d1570a", 1.3))


def ticks(low, high):
    """About five round numbers from `low` to `high`."""
    rough = (high - low) / 5 or 1
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [step * number for number in range(first, math.floor(high / step + 1e-9) + 1)]


def scale(low, high, begin, end):
    """A function from a value to a place."""
    return lambda value: begin + (end - begin) * (value - low) / ((high - low) or 1)


def panel(title, lines, marks, bounds):
    """The elements of a panel at the origin. `lines`: [[(x, y)]], `marks`: [(x, text)], `bounds`: of y."""
    most = max(x for line in lines for x, _ in line)
    across, up = scale(0, most, LEFT, WIDTH - RIGHT), scale(*bounds, HEIGHT - BOTTOM, TOP)
    for tick in ticks(*bounds):
        yield f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{up(tick):.1f}" y2="{up(tick):.1f}" stroke="#d0d7de"/>'
        yield f'<text x="{LEFT - 6}" y="{up(tick) + 3.5:.1f}" text-anchor="end">{tick:g}</text>'
    for tick in ticks(0, most):
        yield f'<text x="{across(tick):.1f}" y="{HEIGHT - BOTTOM + 15}" text-anchor="middle">{tick:g}</text>'
    yield f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}" text-anchor="middle" font-weight="bold">{escape(title)}</text>'
    for line, (color, width) in zip(lines, STYLES):
        points = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in line)
        yield f'<polyline fill="none" stroke="{color}" stroke-width="{width}" stroke-linejoin="round" points="{points}"/>'
    for x, text in marks:
        yield f'<line x1="{across(x):.1f}" x2="{across(x):.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="#6e7781" stroke-dasharray="3 3"/>'
        yield f'<text x="{across(x):.1f}" y="{TOP - 5}" text-anchor="middle" fill="#6e7781">{escape(text)}</text>'


def svg(names, panels):
    """`names`: of the two curves. `panels`: [(title of the x axis, [[(x, y)] of a name], [(x, text)] to mark)], side by side."""
    ys = [y for _, lines, _ in panels for line in lines for _, y in line]
    bounds = (math.floor(min(ys)), math.ceil(max(ys)))
    width, height = WIDTH * len(panels), HEIGHT + LEGEND
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
           'font-family="sans-serif" font-size="11" fill="#24292f">')
    yield f'<rect width="{width}" height="{height}" fill="#ffffff"/>'
    for number, (name, (color, wide)) in enumerate(zip(names, STYLES)):
        at = LEFT + number * WIDTH
        yield f'<line x1="{at}" x2="{at + 24}" y1="14" y2="14" stroke="{color}" stroke-width="{wide}"/>'
        yield f'<text x="{at + 30}" y="18">{escape(name)}</text>'
    for number, (title, lines, marks) in enumerate(panels):
        yield f'<g transform="translate({WIDTH * number} {LEGEND})">'
        yield from panel(title, lines, marks, bounds)
        yield "</g>"
    yield "</svg>"
