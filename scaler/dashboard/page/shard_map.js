// The shard map: one square per shard, in the order in which they run. For any number of shards, a
// frame is one picture with a pixel per square, which is drawn enlarged. That takes two calls, and the grid.

export const kStates = ["todo", "leased", "done", "committed", "failed"];

const kLargestSquare = 40;
const kSmallestSquare = 2;
const kLongest = 1.5;
const kGridFrom = 5;
// If a square stands for several shards, it shows the state with the largest weight: that needs attention first.
const kWeight = { failed: 5, leased: 4, done: 3, todo: 2, committed: 1 };

/** The largest cells, `columns` x `rows`, that fill the box, but not much longer than wide or wider than long. */
function stretch(layout, width, height) {
  const most = kLongest * layout.square;
  return { ...layout, cellWidth: Math.min(width / layout.columns, most), cellHeight: Math.min(height / layout.rows, most) };
}

/**
 * How `shards` fit into a box: {per, square, columns, rows, cellWidth, cellHeight}. There are `per` shards per cell. A cell
 * is about a square; sizes are in CSS pixels.
 */
export function layOut(shards, width, height) {
  for (let square = Math.min(kLargestSquare, Math.floor(width)); square >= kSmallestSquare; --square) {
    const columns = Math.max(1, Math.floor(width / square));
    const rows = Math.max(1, Math.ceil(shards / columns));
    if (rows * square <= height) return stretch({ per: 1, square, columns, rows }, width, height);
  }
  const columns = Math.max(1, Math.floor(width / kSmallestSquare));
  const most = columns * Math.max(1, Math.floor(height / kSmallestSquare));
  const per = Math.ceil(shards / most);
  return stretch({ per, square: kSmallestSquare, columns, rows: Math.ceil(Math.ceil(shards / per) / columns) }, width, height);
}

/** The state of each square, as an index into kStates. */
export function squaresOf(map, per) {
  const squares = new Uint8Array(Math.ceil(map.shards / per));
  const weights = per > 1 ? new Uint8Array(squares.length) : null;
  for (const { begin, end, state } of map.runs) {
    const index = kStates.indexOf(state);
    if (!weights) {
      squares.fill(index, begin, end);
      continue;
    }
    for (let at = Math.floor(begin / per); at * per < end; ++at) {
      if (kWeight[state] <= weights[at]) continue;
      weights[at] = kWeight[state];
      squares[at] = index;
    }
  }
  return squares;
}

/** The state of one shard. */
export function stateAt(map, index) {
  let low = 0;
  let high = map.runs.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (map.runs[middle].end <= index) low = middle + 1;
    else high = middle;
  }
  return low < map.runs.length ? map.runs[low].state : "todo";
}

function rgb(color) {
  const probe = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  probe.fillStyle = color;
  probe.fillRect(0, 0, 1, 1);
  return probe.getImageData(0, 0, 1, 1).data;
}

export class ShardMap {
  constructor(canvas) {
    this.canvas = canvas;
    this.small = document.createElement("canvas");
    this.theme();
  }

  /** Reads the colours of the page again, because it may have become dark or light. */
  theme() {
    const style = getComputedStyle(document.documentElement);
    this.colors = kStates.map((state) => rgb(style.getPropertyValue(`--shard-${state}`)));
  }

  draw(map, width, height) {
    const layout = layOut(map.shards, width, height);
    this.layout = layout;
    const squares = squaresOf(map, layout.per);
    this.small.width = layout.columns;
    this.small.height = Math.max(1, layout.rows);
    const picture = new ImageData(this.small.width, this.small.height);
    for (let i = 0; i < squares.length; ++i) picture.data.set(this.colors[squares[i]], 4 * i);
    this.small.getContext("2d").putImageData(picture, 0, 0);

    const scale = window.devicePixelRatio || 1;
    const [w, h] = [layout.columns * layout.cellWidth, layout.rows * layout.cellHeight];
    this.canvas.width = Math.round(w * scale);
    this.canvas.height = Math.round(h * scale);
    this.canvas.style.width = `${w}px`;
    this.canvas.style.height = `${h}px`;
    const context = this.canvas.getContext("2d");
    context.imageSmoothingEnabled = false;
    context.drawImage(this.small, 0, 0, this.canvas.width, this.canvas.height);
    if (layout.square >= kGridFrom) this.drawGrid(context, scale);
  }

  drawGrid(context, scale) {
    const { columns, rows, cellWidth, cellHeight } = this.layout;
    context.beginPath();
    for (let column = 0; column <= columns; ++column) {
      const x = Math.round(column * cellWidth * scale);
      context.moveTo(x, 0);
      context.lineTo(x, this.canvas.height);
    }
    for (let row = 0; row <= rows; ++row) {
      const y = Math.round(row * cellHeight * scale);
      context.moveTo(0, y);
      context.lineTo(this.canvas.width, y);
    }
    // The grid is cut out, so it has the colour of whatever is behind.
    context.globalCompositeOperation = "destination-out";
    context.lineWidth = 2 * scale;
    context.stroke();
  }

  /** The first shard of the square at a place in the canvas, in CSS pixels. */
  shardAt(x, y) {
    const { per, columns, cellWidth, cellHeight } = this.layout;
    const column = Math.floor(x / cellWidth);
    if (column >= columns) return null;
    return (Math.floor(y / cellHeight) * columns + column) * per;
  }
}
