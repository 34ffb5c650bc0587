"""Draws the AUCs of all rounds to an SVG file: a row for each shape, a dot for each round, a line at the mean."""

LEFT, WIDTH, ROW, TOP = 250, 620, 26, 34
STYLE = "font-family:sans-serif;font-size:12px"


def draw(path, aucs, words):
    """`aucs`: name -> values, the reference first; `words`: name -> what stands beside its row."""
    values = [value for row in aucs.values() for value in row]
    low, high = min(values) - 0.001, max(values) + 0.001
    right = LEFT + WIDTH

    def x(value):
        return LEFT + WIDTH * (value - low) / (high - low)

    height = TOP + ROW * len(aucs) + 30
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{right + 20}" height="{height}" style="{STYLE}">',
             '<rect width="100%" height="100%" fill="white"/>',
             f'<text x="{LEFT}" y="18">AUC of the test set after one pass; a dot for each run, a line at the mean</text>']
    for mark in range(int(low * 1000) + 1, int(high * 1000) + 1):
        if mark % 2 == 0:
            at = x(mark / 1000)
            lines.append(f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{TOP}" y2="{height - 30}" stroke="#ddd"/>')
            lines.append(f'<text x="{at:.1f}" y="{height - 12}" text-anchor="middle">{mark / 1000:.3f}</text>')
    for number, (name, row) in enumerate(aucs.items()):
        y = TOP + ROW * number + ROW / 2
        color = "#555" if number == 0 else "#1565c0"
        mean = x(sum(row) / len(row))
        lines.append(f'<text x="{LEFT - 10}" y="{y + 4:.1f}" text-anchor="end">{words[name]}</text>')
        lines += [f'<circle cx="{x(value):.1f}" cy="{y:.1f}" r="3" fill="{color}" fill-opacity="0.5"/>' for value in row]
        lines.append(f'<line x1="{mean:.1f}" x2="{mean:.1f}" y1="{y - 9:.1f}" y2="{y + 9:.1f}" stroke="{color}" stroke-width="2"/>')
    lines.append("</svg>")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
