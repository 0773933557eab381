// The server's requests, relative to the page's secret folder.

export class RequestError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
  /// The server does not have this part.
  get isUnsupported() { return this.status === 501 || this.status === 404; }
}

async function request(path, options = {}) {
  let response;
  try {
    response = await fetch(path, { cache: "no-store", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new RequestError(0, "bundlefs ui does not answer. It has probably ended.");
  }
  if (response.ok || response.status === 206) return response;
  let sentence = `${response.status} ${response.statusText}`;
  try { sentence = (await response.json()).error ?? sentence; } catch { /* not JSON */ }
  throw new RequestError(response.status, sentence);
}

const json = async (path, options) => (await request(path, options)).json();

function post(path, body) {
  const headers = { "Content-Type": "application/json" };
  return json(path, { method: "POST", headers, body: JSON.stringify(body) });
}

export const mounts = () => json("api/mounts");

/// One mount's part of the API. Paths are percent-encoded.
export class Mount {
  constructor(description) {
    Object.assign(this, description);
    this.base = `api/mounts/${encodeURIComponent(description.id)}`;
    this.contentBase = `content/${encodeURIComponent(description.id)}`;
  }

  status() { return json(`${this.base}/status`); }
  /// Counting names would take long; the tree tells the numbers.
  layers() { return json(`${this.base}/layers?count=no`); }
  versions(path) { return json(`${this.base}/versions?path=${path}`); }
  /// A property list as text.
  text(path, layer) { return json(`${this.base}/text?path=${path}&layer=${layer}`); }
  strings(path) { return json(`${this.base}/strings?path=${path}`); }
  results() { return json(`${this.base}/results`); }
  setLayers(paths) { return post(`${this.base}/layers`, { encodedLayers: paths }); }
  change(verb, paths) { return post(`${this.base}/${verb}`, { encodedPaths: paths }); }
  setString(path, key, value) { return post(`${this.base}/strings`, { encodedPath: path, key, value }); }
  /// What can be undone, the last edit last.
  edits() { return json(`${this.base}/edits`); }
  undo(id) { return post(`${this.base}/undo`, { undo: id }); }
  open(path) { return post(`${this.base}/open`, { encodedPath: path }); }
  route(url, match) { return post(`${this.base}/routes`, { url, match }); }
  profiles() { return json(`${this.base}/profiles`); }
  loadProfile(name) { return post(`${this.base}/profiles`, { load: name }); }
  /// - Parameter replace: whether another profile of the name is replaced.
  saveProfile(name, replace) { return post(`${this.base}/profiles`, { save: name, replace }); }

  /// Writes a file into the top layer.
  put(path, file) {
    const headers = { "Content-Type": "application/octet-stream" };
    return json(`${this.contentBase}/top/${path}`, { method: "PUT", headers, body: file });
  }

  /// At most `limit` bytes from the start of a version.
  async bytes(address, limit) {
    try {
      const response = await request(address, { headers: { Range: `bytes=0-${limit - 1}` } });
      return new Uint8Array(await response.arrayBuffer()).subarray(0, limit);
    } catch (error) {
      // An empty file has no such range.
      if (error.status === 416) return new Uint8Array();
      throw error;
    }
  }

  /// Reads the tree, or what is at a path and beneath it, and hands out the entries in batches as they arrive.
  /// - Returns: what stands around the entries.
  async tree({ path, signal, onEntries }) {
    const query = path === undefined ? "" : `?path=${path}`;
    const response = await request(`${this.base}/tree${query}`, { signal });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    const parser = new TreeParser();
    for (;;) {
      const { value, done } = await reader.read();
      const entries = done ? parser.end() : parser.add(value);
      if (entries.length > 0) onEntries(entries);
      if (done) return parser.rest();
    }
  }

  events() { return new EventSource(`${this.base}/events`); }
}

/// Takes the entries out of the tree's JSON, in which each has a line.
class TreeParser {
  #pending = "";
  #around = "";

  add(text) {
    const lines = (this.#pending + text).split("\n");
    this.#pending = lines.pop();
    return this.#entries(lines);
  }

  end() {
    const lines = [this.#pending];
    this.#pending = "";
    return this.#entries(lines);
  }

  #entries(lines) {
    const entries = [];
    for (const line of lines) {
      if (line.startsWith("  {\"path\":") && line.includes("\"verdict\":")) {
        entries.push(JSON.parse(line.endsWith(",") ? line.slice(0, -1) : line));
      } else {
        this.#around += line;
      }
    }
    return entries;
  }

  rest() { return JSON.parse(this.#around); }
}
