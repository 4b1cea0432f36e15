// Tables in the sandbox: CSV, TSV and JSON lines, page by page. Every answer says first, in `looked`, what it covers:
// where it is longer than a result may be, its end is cut.
globalThis.table = (() => {
  "use strict";
  const PAGE_LINES = 1000, PAGE_CHARACTERS = 60000, CALLS = 240;
  const SHOWN = 80, EXAMPLES = 3, DISTINCT = 10000, GROUPS = 20000;

  // -- lines ----------------------------------------------------------------------------------------------------------

  async function countLines(path) {
    try {
      await tools.readFile({ filePath: path, offset: 1e9, limit: 1 });
    } catch (error) {
      const found = /exceeds file length \((\d+) lines?\)/.exec(error.message);
      if (found) return Number(found[1]);
      throw error;
    }
    return 0; // nothing but white space
  }

  async function eachLine(path, most, onLine) {
    const total = await countLines(path), end = Math.min(total, most), tooLong = [];
    let at = 0, size = PAGE_LINES, calls = 1;
    while (at < end && calls < CALLS) {
      const limit = Math.min(size, end - at);
      calls += 1;
      try {
        const page = await tools.readFile({ filePath: path, offset: at, limit });
        page.split("\n").forEach((line, index) => onLine(line, at + index + 1));
        at += limit;
        size = Math.max(1, Math.min(PAGE_LINES, Math.floor((PAGE_CHARACTERS * limit) / (page.length + 1))));
      } catch (error) {
        if (error.limit) size = error.limit;
        else if (error.offset) tooLong.push((at = error.offset));
        else throw error;
      }
    }
    return { total, read: at, tooLong };
  }

  // -- rows -----------------------------------------------------------------------------------------------------------

  function csvReader(delimiter, onCells) {
    let cells = [], cell = "", begun = 0, quoted = false;
    function close(line) {
      cells.push(cell);
      onCells(cells, line);
    }
    function take(text, line) {
      if (!quoted && !text.includes('"')) {
        if (text.trim() !== "") onCells(text.split(delimiter), line);
        return;
      }
      if (quoted) cell += "\n";
      else [cells, cell, begun] = [[], "", line];
      for (let at = 0; at < text.length; at += 1) {
        const one = text[at];
        if (quoted && one === '"' && text[at + 1] === '"') (cell += '"'), (at += 1);
        else if (quoted && one === '"') quoted = false;
        else if (!quoted && one === '"' && cell === "") quoted = true;
        else if (!quoted && one === delimiter) cells.push(cell), (cell = "");
        else cell += one;
      }
      if (!quoted) close(begun);
    }
    return { take, open: () => (quoted ? begun : null) };
  }

  async function format(path, options) {
    let first = "";
    await eachLine(path, 50, (line) => (first = first || line.trim()));
    if (first === "") throw new Error(`${path} is empty`);
    if (first[0] === "[") throw new Error(`${path} is one JSON list, not a table: read it whole and use JSON.parse`);
    if (first[0] === "{") return { kind: "json lines" };
    const bare = first.replace(/"[^"]*"/g, "");
    const counted = ["\t", ";", ",", "|"].map((one) => [bare.split(one).length, one]);
    const [, delimiter] = counted.reduce((best, one) => (one[0] > best[0] ? one : best));
    return { kind: "csv", delimiter: options.delimiter || delimiter };
  }

  function unlike(names) {
    const seen = new Map();
    return names.map((name, index) => {
      const plain = name.trim() || `column ${index + 1}`;
      const times = (seen.get(plain) || 0) + 1;
      seen.set(plain, times);
      return times === 1 ? plain : `${plain} (${times})`;
    });
  }

  async function scan(path, options, onRow) {
    const shape = await format(path, options);
    const columns = [], skipped = { rows: 0, examples: [] };
    const absent = new Proxy(Object.create(null), {
      get(_, name) {
        if (typeof name === "string" && name !== "toJSON") need(columns, [name]);
      },
    });
    const where = options.where || (() => true);
    let rows = 0, matched = 0;
    const skip = (line, why) => {
      skipped.rows += 1;
      if (skipped.examples.length < EXAMPLES) skipped.examples.push(`line ${line}: ${why}`);
    };
    const take = (row, line) => {
      rows += 1;
      if (!where(row)) return;
      matched += 1;
      onRow(row, line);
    };
    const cellsTaken = (cells, line) => {
      if (columns.length === 0) {
        columns.push(...unlike(options.header === false ? cells.map(() => "") : cells));
        if (options.header !== false) return;
      }
      if (cells.length !== columns.length) return skip(line, `${cells.length} cells, not ${columns.length}`);
      const row = Object.create(absent);
      columns.forEach((name, index) => (row[name] = cells[index].trim()));
      take(row, line);
    };
    const jsonTaken = (text, line) => {
      if (text.trim() === "") return;
      let found;
      try {
        found = JSON.parse(text);
      } catch (error) {
        return skip(line, "not JSON");
      }
      if (found === null || typeof found !== "object" || Array.isArray(found)) return skip(line, "no JSON object");
      const row = Object.create(null);
      for (const [name, value] of Object.entries(found)) {
        if (!columns.includes(name)) columns.push(name);
        row[name] = value === null ? "" : typeof value === "object" ? JSON.stringify(value) : value;
      }
      take(row, line);
    };
    const csv = shape.kind === "csv" ? csvReader(shape.delimiter, cellsTaken) : null;
    const read = await eachLine(path, options.lines || Infinity, csv ? csv.take : jsonTaken);
    read.tooLong.forEach((line) => skip(line, "longer than a page"));
    const looked = { lines: `${read.read} of ${read.total}`, rows, matched, skipped: skipped.rows };
    if (skipped.rows) looked.skippedExamples = skipped.examples;
    if (csv && csv.open()) looked.unclosedQuote = `line ${csv.open()}: everything behind it is missing`;
    looked.complete = read.read === read.total && skipped.rows === 0 && !looked.unclosedQuote;
    return { shape, columns, looked };
  }

  // -- values ---------------------------------------------------------------------------------------------------------

  function numbersOf(options) {
    return (value) => {
      let text = String(value).trim();
      if (options.thousands) text = text.split(options.thousands).join("");
      if (options.decimal) text = text.replace(options.decimal, ".");
      return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) ? Number(text) : NaN;
    };
  }

  class Numbers {
    constructor(number) {
      Object.assign(this, { number, count: 0, total: 0, lost: 0, min: Infinity, max: -Infinity, empty: 0, others: [] });
      this.otherCount = 0;
    }
    add(value) {
      const found = this.number(value);
      if (value === "" || value === undefined) this.empty += 1;
      else if (!Number.isFinite(found)) {
        this.otherCount += 1;
        if (this.others.length < EXAMPLES) this.others.push(short(value));
      } else {
        const sum = this.total + found; // Neumaier: cents stay cents
        this.lost += Math.abs(this.total) >= Math.abs(found) ? this.total - sum + found : found - sum + this.total;
        this.total = sum;
        this.count += 1;
        this.min = Math.min(this.min, found);
        this.max = Math.max(this.max, found);
      }
    }
    told() {
      const sum = this.total + this.lost;
      const told = { numbers: this.count };
      const { count, min, max } = this;
      if (count) Object.assign(told, { sum: tidy(sum), mean: tidy(sum / count), min, max });
      if (this.empty) told.empty = this.empty;
      if (this.otherCount) Object.assign(told, { notNumbers: this.otherCount, notNumbersExamples: this.others });
      return told;
    }
  }

  const tidy = (value) => Number(value.toPrecision(12));
  const short = (value) => (String(value).length > SHOWN ? String(value).slice(0, SHOWN) + "…" : value);
  const shortRow = (row, line) => ({ line, ...Object.fromEntries(Object.entries(row).map(([k, v]) => [k, short(v)])) });

  function need(columns, names) {
    const missing = names.filter((name) => !columns.includes(name));
    if (missing.length) throw new Error(`there is no column ${missing.join(", ")}; there are: ${columns.join(", ")}`);
  }

  // -- what is asked --------------------------------------------------------------------------------------------------

  // Format, columns and the first rows.
  async function look(path, options = {}) {
    const rows = [];
    const { shape, columns, looked } = await scan(path, { lines: 100, ...options }, (row, line) => {
      if (rows.length < 5) rows.push(shortRow(row, line));
    });
    return { looked, ...shape, columns, rows };
  }

  // Each column: filled, empty, distinct values, numbers with sum, mean, min and max, the most frequent values.
  async function profile(path, options = {}) {
    const known = new Map(), number = numbersOf(options);
    const { columns, looked } = await scan(path, options, (row) => {
      for (const name in row) {
        let one = known.get(name);
        if (!one) known.set(name, (one = { numbers: new Numbers(number), values: new Map(), filled: 0, full: false }));
        one.numbers.add(row[name]);
        if (row[name] === "") continue;
        one.filled += 1;
        const times = one.values.get(row[name]);
        if (times !== undefined || one.values.size < DISTINCT) one.values.set(row[name], (times || 0) + 1);
        else one.full = true;
      }
    });
    const told = columns.filter((name) => known.has(name)).map((name) => {
      const { numbers, values, filled, full } = known.get(name);
      const most = [...values].sort((a, b) => b[1] - a[1]).slice(0, 5).filter(([, times]) => times > 1);
      const distinct = full ? `over ${DISTINCT}` : values.size;
      const column = { name, filled, empty: looked.matched - filled, distinct };
      if (numbers.count) Object.assign(column, numbers.told(), { empty: column.empty });
      if (most.length && !full) column.most = most.map(([value, times]) => [short(value), times]);
      return column;
    });
    return { looked, columns: told };
  }

  // Rows for each value of `by` (a column or a list of them), with the sum of a column; the largest first.
  async function group(path, { by, sum, top = 50, ...options }) {
    const names = Array.isArray(by) ? by : [by], groups = new Map(), number = numbersOf(options);
    const { columns, looked } = await scan(path, options, (row) => {
      const key = JSON.stringify(names.map((name) => row[name] ?? ""));
      let one = groups.get(key);
      if (!one) {
        if (groups.size >= GROUPS) throw new Error(`more than ${GROUPS} groups: choose a column with fewer values`);
        groups.set(key, (one = { rows: 0, numbers: new Numbers(number) }));
      }
      one.rows += 1;
      if (sum) one.numbers.add(row[sum]);
    });
    need(columns, sum ? [...names, sum] : names);
    const all = [...groups].map(([key, one]) => {
      const values = JSON.parse(key).map(short);
      return { group: values.length === 1 ? values[0] : values, rows: one.rows, ...(sum ? one.numbers.told() : {}) };
    });
    all.sort((a, b) => (sum ? (b.sum ?? -Infinity) - (a.sum ?? -Infinity) : 0) || b.rows - a.rows);
    return { looked, groupsNotShown: Math.max(0, all.length - top), groups: all.slice(0, top) };
  }

  // Numbers of a column outside of the quartiles by more than `times` their distance; the farthest first.
  async function outliers(path, { column, times = 1.5, top = 20, ...options }) {
    const number = numbersOf(options), values = [], lines = [];
    let others = 0;
    const { columns, looked } = await scan(path, options, (row, line) => {
      const found = number(row[column] ?? "");
      if (Number.isFinite(found)) values.push(found), lines.push(line);
      else others += 1;
    });
    need(columns, [column]);
    const sorted = Float64Array.from(values).sort();
    const at = (share) => {
      const place = (sorted.length - 1) * share, low = Math.floor(place), high = Math.ceil(place);
      return sorted[low] + (sorted[high] - sorted[low]) * (place - low);
    };
    const told = { looked, numbers: sorted.length, withoutNumber: others };
    if (sorted.length < 4) return { ...told, note: "fewer than 4 numbers: no outliers can be told" };
    const [first, median, third] = [at(0.25), at(0.5), at(0.75)].map(tidy);
    const [below, above] = [tidy(first - times * (third - first)), tidy(third + times * (third - first))];
    const found = [];
    values.forEach((value, index) => {
      if (value < below || value > above) found.push({ line: lines[index], value });
    });
    found.sort((a, b) => Math.abs(b.value - median) - Math.abs(a.value - median));
    const bounds = { quartiles: [first, median, third], below, above };
    return { ...told, ...bounds, count: found.length, found: found.slice(0, top) };
  }

  // Rows as they are, with their lines: those of `where`, the first `top`.
  async function rows(path, { top = 20, ...options } = {}) {
    const found = [];
    const { looked } = await scan(path, options, (row, line) => {
      if (found.length < top) found.push(shortRow(row, line));
    });
    return { looked, rowsNotShown: looked.matched - found.length, rows: found };
  }

  return { look, profile, group, outliers, rows };
})();
