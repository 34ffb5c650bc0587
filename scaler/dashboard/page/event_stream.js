// Parses server-sent events from pieces of text. Source: WHATWG HTML, "Server-sent events". It reads only
// what our server writes: lines end with \n, and the fields are id, event and data.

export class EventStreamParser {
  constructor(onMessage) {
    this.onMessage = onMessage;
    this.rest = "";
    this.clear();
  }

  clear() {
    this.id = "";
    this.name = "message";
    this.data = [];
  }

  /** Takes a piece of text, and calls onMessage({name, id, data}) for each message that is complete. */
  push(text) {
    const lines = (this.rest + text).split("\n");
    this.rest = lines.pop();
    for (const line of lines) this.line(line);
  }

  line(line) {
    if (line === "") {
      if (this.data.length > 0) {
        this.onMessage({ name: this.name, id: this.id, data: this.data.join("\n") });
      }
      this.clear();
      return;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return;  // a comment
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") this.data.push(value);
    if (field === "event") this.name = value;
    if (field === "id") this.id = value;
  }
}
