// The states of many tasks as letters, see services/web/src/ui/letters.rs, and what they mean.

export interface State {
  letter: string;
  word: string;
  /** A shape of its own, as no state is told by colour alone. */
  shape: "square" | "dot" | "triangle" | "half" | "cross" | "ring" | "frame" | "dash" | "box" | "bang";
  colour: string;
}

/** What needs a look first, first. */
export const STATES: State[] = [
  { letter: "x", word: "lost", shape: "cross", colour: "--bad" },
  { letter: "e", word: "ended", shape: "box", colour: "--bad" },
  { letter: "f", word: "in error", shape: "bang", colour: "--bad" },
  { letter: "y", word: "late", shape: "half", colour: "--late" },
  { letter: "o", word: "never came", shape: "ring", colour: "--never" },
  { letter: "m", word: "awaited", shape: "triangle", colour: "--late" },
  { letter: "g", word: "registering", shape: "frame", colour: "--waits" },
  { letter: "b", word: "in a barrier", shape: "square", colour: "--waits" },
  { letter: "c", word: "connected", shape: "dot", colour: "--well" },
  { letter: "l", word: "left", shape: "dash", colour: "--never" },
];

const BY_LETTER = new Map(STATES.map((state) => [state.letter.charCodeAt(0), state]));

export function stateOf(letter: number): State {
  return BY_LETTER.get(letter) ?? STATES[2]!;
}

/** Letters out of runs (`b511m1`), or of the letters themselves behind `=`. */
export function decode(text: string): Uint8Array {
  if (text.startsWith("=")) {
    return Uint8Array.from(text.slice(1), (letter) => letter.charCodeAt(0));
  }
  const runs = [...text.matchAll(/(\D)(\d+)/g)].map((run) => [run[1]!.charCodeAt(0), Number(run[2])] as const);
  const letters = new Uint8Array(runs.reduce((sum, [, count]) => sum + count, 0));
  let place = 0;
  for (const [letter, count] of runs) {
    letters.fill(letter, place, place + count);
    place += count;
  }
  return letters;
}

/** The same with what a frame says: all of them, or those at some places. */
export function changed(old: Uint8Array, news: string | [number, string][]): Uint8Array {
  if (typeof news === "string") {
    return decode(news);
  }
  const letters = old.slice();
  for (const [start, run] of news) {
    for (let place = 0; place < run.length; place += 1) {
      letters[start + place] = run.charCodeAt(place);
    }
  }
  return letters;
}

export function counts(letters: Uint8Array): Map<string, number> {
  const found = new Map<string, number>();
  for (const letter of letters) {
    const key = String.fromCharCode(letter);
    found.set(key, (found.get(key) ?? 0) + 1);
  }
  return found;
}

/** An age's letter in words: the least that it stands for. */
export function ageOf(letter: number | undefined): string {
  if (letter === undefined || letter === 63) {
    return "unknown";
  }
  const step = letter - 65;
  return step === 0 ? "< 0.1 s" : `≥ ${span(100 * 2 ** (step - 1))}`;
}

/** A length of time as people write it. */
export function span(ms: number): string {
  if (ms < 10_000) {
    return `${(ms / 1000).toFixed(1)} s`;
  }
  const seconds = Math.round(ms / 1000);
  if (seconds < 100) {
    return `${seconds} s`;
  }
  const minutes = Math.floor(seconds / 60);
  if (minutes < 100) {
    return `${minutes} m ${seconds % 60} s`;
  }
  const hours = Math.floor(minutes / 60);
  return hours < 100 ? `${hours} h ${minutes % 60} m` : `${Math.floor(hours / 24)} d`;
}

export function bytes(count: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let value = count;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`;
}

/** Local time with its offset; the title of an element tells it in UTC. */
export function local(ms: number): string {
  const at = new Date(ms);
  const offset = -at.getTimezoneOffset();
  const two = (value: number) => String(Math.trunc(Math.abs(value))).padStart(2, "0");
  const sign = offset < 0 ? "-" : "+";
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())} ${sign}${two(offset / 60)}:${two(offset % 60)}`;
}
