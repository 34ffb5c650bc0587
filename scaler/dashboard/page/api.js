// Questions and orders to the REST interface (docs/rest.md).

/** An answer that reports an error. Status 0 means that there was no answer. */
export class ApiError extends Error {
  constructor(status, detail, fields = [], retryAfterSeconds = 0) {
    super(detail);
    this.status = status;
    this.fields = fields;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

const kTimeoutMs = 10000;

async function errorOf(response) {
  let problem = {};
  try {
    problem = await response.json();
  } catch {
    // Without a problem document, only the status says what is wrong.
  }
  const fields = (problem.errors || []).map((field) => `${field.field}: ${field.message}`);
  const detail = problem.detail || `${response.status} ${response.statusText}`;
  return new ApiError(response.status, detail, fields, Number(response.headers.get("Retry-After")));
}

export class Api {
  constructor(token) {
    this.token = token;
  }

  headers(more = {}) {
    return { Authorization: `Bearer ${this.token}`, ...more };
  }

  /** Returns the document at `path`. Throws ApiError. */
  get(path) {
    return this.ask(path, { headers: this.headers() });
  }

  /** Gives an order, and returns the event that it caused. Throws ApiError. */
  act(path, body) {
    const headers = this.headers({ "Content-Type": "application/json" });
    return this.ask(path, { method: "POST", headers, body: JSON.stringify(body) });
  }

  /** Opens the stream, and returns its unread response. `lastEventId` may be null. Throws ApiError. */
  async openStream(path, lastEventId, signal) {
    const headers = this.headers(lastEventId === null ? {} : { "Last-Event-ID": String(lastEventId) });
    const response = await this.fetch(path, { headers, signal });
    if (!response.ok) throw await errorOf(response);
    return response;
  }

  async ask(path, options) {
    const response = await this.fetch(path, { ...options, signal: AbortSignal.timeout(kTimeoutMs) });
    if (!response.ok) throw await errorOf(response);
    return response.json();
  }

  async fetch(path, options) {
    try {
      return await fetch(path, { cache: "no-store", credentials: "omit", ...options });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      const silent = error.name === "TimeoutError";
      throw new ApiError(0, silent ? "The scaler did not answer in time." : "The scaler cannot be reached.");
    }
  }
}
