// Moves within one folder: listed, checked against what is there, and written as a script. Nothing is overwritten.
globalThis.organiser = (() => {
  "use strict";
  const FOLDERS = 200, COPIES = 20, NAMES_SHOWN = 30, TOLD = 15, LARGEST = 500000, PLAN = "/organiser/plan.json";
  const BINARY = new RegExp(
    "\\.(3gpp|aac|aiff|avi|docx?|flac|flv|gif|gz|hei[cf]|ico|jpe?g|m4a|mkv|mov|mp[34]|mpe?g|odt|ogg|pdf|png|pptx?|" +
      "tar|wav|web[mp]|wmv|xlsx?|zip)$",
    "i",
  );

  const plain = (path) => {
    try {
      return decodeURIComponent(path);
    } catch (error) {
      return path;
    }
  };
  const granted = (path) => path.startsWith("/local/"); // where paths are told with %XX for what is not ASCII
  const inner = (folder, path) => {
    const name = path.slice(folder.length + 1);
    return granted(folder) ? plain(name) : name;
  };
  const outer = (folder, name) => `${folder}/${granted(folder) ? name.replace(/%/g, "%25") : name}`;
  const alike = (name) => name.normalize("NFC").toLowerCase();
  const trimmed = (folder) => folder.replace(/\/+$/, "");

  // Every file in the folder and below, as names within it. Folders that begin with a dot are left alone.
  async function list(given) {
    const folder = trimmed(given), waiting = [folder], files = [], folders = [], failed = [];
    let calls = 0;
    while (waiting.length && calls < FOLDERS) {
      calls += 1;
      const path = waiting.shift();
      let found;
      try {
        found = await tools.ls({ path });
      } catch (error) {
        if (path === folder) throw error;
        failed.push(`${inner(folder, path)}: ${error.message}`);
        continue;
      }
      for (const one of found) {
        const name = inner(folder, trimmed(one));
        if (!one.endsWith("/")) files.push(name);
        else if (!name.split("/").pop().startsWith(".")) folders.push(name), waiting.push(trimmed(one));
      }
    }
    return { files, folders, notListed: [...failed, ...waiting.map((path) => inner(folder, path))] };
  }

  // A result has room for 8,000 characters: the first of a list, and how many more there are.
  const some = (list) => (list.length > TOLD ? [...list.slice(0, TOLD), `and ${list.length - TOLD} more`] : list);

  function fitting(names, room) {
    const kept = names.findIndex((name) => (room -= name.length + 3) < 0);
    return kept < 0 ? names : names.slice(0, kept);
  }

  // What the folder holds, by ending: for choosing where things go.
  async function look(folder) {
    const { files, folders, notListed } = await list(folder);
    await tools.writeFile({ filePath: "/organiser/files.json", content: JSON.stringify(files, null, 1) });
    const endings = {};
    for (const name of files) {
      const ending = (/[^/]\.([^./]+)$/.exec(name) || ["", "none"])[1].toLowerCase();
      endings[ending] = (endings[ending] || 0) + 1;
    }
    const most = Object.entries(endings).sort((a, b) => b[1] - a[1]).slice(0, 30);
    const told = { count: files.length, endings: Object.fromEntries(most), notListed: some(notListed) };
    return { ...told, folders: fitting(folders, 1500), files: fitting(files, 4000) };
  }

  // `moves`: [["from", "to"], …], names within the folder. Keeps what can be done as the plan, and says what cannot.
  async function plan(given, moves) {
    const folder = trimmed(given), { files, folders, notListed } = await list(folder);
    const there = new Set(files), from = new Set(), isFile = new Set(files.map(alike));
    const taken = new Set([...isFile, ...folders.map(alike)]);
    const good = [], refused = [];
    for (const [source, target] of moves) {
      const fault = faultOf(source, target, { there, taken, from, isFile });
      if (fault) refused.push(`${source} → ${target}: ${fault}`);
      else good.push([source, target]), from.add(source), taken.add(alike(target)), isFile.add(alike(target));
    }
    await tools.writeFile({ filePath: PLAN, content: JSON.stringify({ folder, moves: good }, null, 1) });
    const stay = files.length - good.length;
    const told = { moves: good.length, stay, refused: some(refused), notListed: some(notListed) };
    return { question: question(folder, good), ...told };
  }

  function faultOf(source, target, { there, taken, from, isFile }) {
    if (!there.has(source)) return "there is no such file";
    if (from.has(source)) return "it is moved twice";
    const parts = target.split("/");
    if (parts.some((part) => ["", ".", ".."].includes(part) || /[\\\x00-\x1f\x7f]/.test(part)))
      return "no name within the folder";
    if (taken.has(alike(target))) return "something is there, or comes there, already";
    for (let at = 1; at < parts.length; at += 1) {
      const above = parts.slice(0, at).join("/");
      if (isFile.has(alike(above))) return `${above} is a file`;
    }
    return "";
  }

  function question(folder, moves) {
    const byFolder = new Map();
    for (const [source, target] of moves) {
      const where = target.includes("/") ? target.slice(0, target.lastIndexOf("/")) : "(the folder itself)";
      if (!byFolder.has(where)) byFolder.set(where, []);
      const name = target.split("/").pop();
      byFolder.get(where).push(name === source.split("/").pop() ? source : `${source} as ${name}`);
    }
    let left = NAMES_SHOWN;
    const lines = [...byFolder].slice(0, NAMES_SHOWN).map(([where, names]) => {
      const shown = names.slice(0, Math.max(1, left)).map((name) => name.slice(0, 60));
      left -= shown.length;
      const more = names.length > shown.length ? ` and ${names.length - shown.length} more` : "";
      return `- ${where.slice(0, 60)} ← ${shown.join(", ")}${more}`;
    });
    if (byFolder.size > lines.length) lines.push(`- and ${byFolder.size - lines.length} more folders`);
    const way = "I cannot move files myself. I can write a script for you to run, or copy text files.";
    return [`Organise ${folder}: ${moves.length} files?`, ...lines, way].join("\n");
  }

  const planned = async () => JSON.parse(await whole(PLAN));

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

  async function whole(path) {
    const total = await countLines(path), parts = [];
    let limit = 1000;
    for (let at = 0; at < total; ) {
      try {
        parts.push(await tools.readFile({ filePath: path, offset: at, limit }));
        at += limit;
      } catch (error) {
        if (!error.limit || error.limit >= limit) throw error;
        limit = error.limit;
      }
    }
    return parts.map((page) => `${page}\n`).join("");
  }

  // What lies directly in a folder, as names to compare; nothing where there is no such folder.
  async function namesIn(folder) {
    try {
      return new Set((await tools.ls({ path: folder })).map((path) => alike(inner(folder, trimmed(path)))));
    } catch (error) {
      if (/not found/.test(error.message)) return new Set();
      throw error;
    }
  }

  async function scriptName(folder) {
    const there = await namesIn(folder);
    let name = "pizzabot-move.sh";
    for (let number = 2; there.has(name); number += 1) name = `pizzabot-move-${number}.sh`;
    return `${folder}/${name}`;
  }

  const quoted = (text) => `'${text.replace(/'/g, "'\\''")}'`;

  // The planned moves as a shell script, beside the files where that may be written, else in the conversation's files.
  async function script() {
    const { folder, moves } = await planned();
    const lines = moves.map(([source, target]) => `move ${quoted(`./${source}`)} ${quoted(`./${target}`)}`);
    const content = [
      "#!/bin/sh",
      "# Run it with `sh`, with the folder to organise as its argument; without one it is the script's own folder.",
      "# A file is never replaced: what is there already stays, and is told.",
      'cd -- "${1:-$(dirname -- "$0")}" || exit 1',
      "move() {",
      '  if [ ! -e "$1" ]; then echo "not there: $1"',
      '  elif [ -e "$2" ] || [ -L "$2" ]; then echo "not moved, $2 is there: $1"',
      '  else mkdir -p -- "$(dirname -- "$2")" && mv -n -- "$1" "$2"; fi',
      "}",
      ...lines,
      "",
    ].join("\n");
    try {
      const filePath = await scriptName(folder);
      await tools.writeFile({ filePath, content });
      return { script: filePath, moves: moves.length };
    } catch (error) {
      const filePath = await scriptName("/organiser");
      await tools.writeFile({ filePath, content });
      return { script: filePath, moves: moves.length, notBesideTheFiles: error.message };
    }
  }

  // Copies the planned files that are text, a few in a call: go on with `copy(next)` while `left` is over 0.
  async function copy(start = 0) {
    const { folder, moves } = await planned(), now = moves.slice(start, start + COPIES);
    const copied = [], notCopied = [];
    for (const [source, target] of now) {
      try {
        if (BINARY.test(source)) throw new Error("not text");
        const path = outer(folder, target), at = path.lastIndexOf("/");
        const there = await namesIn(path.slice(0, at));
        if (there.has(alike(target.split("/").pop()))) throw new Error(`${target} is there already`);
        const content = await whole(outer(folder, source));
        if (content.length > LARGEST) throw new Error(`over ${LARGEST} characters`);
        await tools.writeFile({ filePath: path, content });
        copied.push(target);
      } catch (error) {
        notCopied.push(`${source}: ${error.message}`);
      }
    }
    return { copied, notCopied, left: Math.max(0, moves.length - start - now.length), next: start + now.length };
  }

  return { look, plan, script, copy };
})();
