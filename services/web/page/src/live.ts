// What is watched, as it changes: one stream of frames, and how old the last one is.

import { useEffect, useReducer, useRef } from "preact/hooks";
import { changed } from "./letters";

/* eslint-disable-next-line -- what a node shows has many shapes, and each view knows its own. */
export type Fields = Record<string, any>;

export interface Shown {
  fields: Fields;
  states: Uint8Array;
  beats: Uint8Array;
  /** 0: it came with the page, or nothing came yet. */
  number: number;
  /** By this browser's clock that cannot be set; when the last frame came. */
  at: number;
  /** Why there are no frames, if so. */
  trouble: string;
}

interface Frame {
  number: number;
  whole: boolean;
  fields: Fields;
  /** Of lists: how long they are now, and the rows that are others. */
  rows?: Record<string, [number, [number, unknown][]]>;
  gone?: string[];
  states?: string | [number, string][];
  beats?: string | [number, string][];
}

/** Without a frame for so long, the node is gone: it sends one each second. What is older than that lags. */
export const GONE_MS = 3_000;
const AGAIN_MS = 3_000;
const NONE = new Uint8Array(0);

function nothing(): Shown {
  return { fields: {}, states: NONE, beats: NONE, number: 0, at: performance.now(), trouble: "" };
}

/** What came with the page, for whoever watches that. */
function first(watched: string): Shown {
  const text = document.getElementById("first")?.textContent;
  const found = text ? (JSON.parse(text) as { watched: string; fields: Fields }) : undefined;
  if (found?.watched !== watched) {
    return nothing();
  }
  const { states, beats, ...fields } = found.fields;
  return {
    ...nothing(),
    fields,
    states: states ? changed(NONE, states) : NONE,
    beats: beats ? changed(NONE, beats) : NONE,
  };
}

function follow(shown: Shown, frame: Frame): Shown {
  const base = frame.whole ? nothing() : shown;
  const fields = { ...base.fields, ...frame.fields };
  for (const [name, [length, rows]] of Object.entries(frame.rows ?? {})) {
    const list = ((base.fields[name] ?? []) as unknown[]).slice(0, length);
    for (const [place, row] of rows) list[place] = row;
    fields[name] = list;
  }
  for (const name of frame.gone ?? []) {
    delete fields[name];
  }
  return {
    fields,
    states: frame.states === undefined ? base.states : changed(base.states, frame.states),
    beats: frame.beats === undefined ? base.beats : changed(base.beats, frame.beats),
    number: frame.number,
    at: performance.now(),
    trouble: "",
  };
}

class Stream {
  shown: Shown;
  private source: EventSource | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private ended = false;
  /** The next frame is everything that there is, whatever was shown before. */
  private anew = false;

  constructor(
    private readonly path: string,
    watched: string,
    private readonly told: () => void,
  ) {
    this.shown = first(watched);
    this.open();
  }

  private open(): void {
    const source = new EventSource(`/ui/api/v1/${this.path}/stream`);
    this.source = source;
    source.onmessage = (event) => {
      const frame = JSON.parse(event.data as string) as Frame;
      if (!frame.whole && frame.number !== this.shown.number + 1) {
        // One is missing: the whole comes first on a new stream.
        this.again(0);
        return;
      }
      // The first frame of a maker that has just begun has nothing in it. What is shown stays until there is something.
      if (frame.whole && frame.number === 0) {
        this.shown = { ...this.shown, number: 0 };
        this.anew = true;
        return;
      }
      this.shown = follow(this.shown, { ...frame, whole: frame.whole || this.anew });
      this.anew = false;
      this.told();
    };
    source.onerror = () => {
      if (source.readyState === EventSource.CLOSED) {
        this.refused().catch(() => this.again(AGAIN_MS));
      }
    };
  }

  /** The stream was refused, and EventSource does not say why. */
  private async refused(): Promise<void> {
    const answer = await fetch(`/ui/api/v1/${this.path}`);
    this.shown = {
      ...this.shown,
      trouble: answer.ok ? "This node has as many viewers as it may have (T7503)." : await answer.text(),
    };
    this.told();
    this.again(AGAIN_MS);
  }

  private again(after: number): void {
    this.source?.close();
    clearTimeout(this.timer);
    if (!this.ended) {
      this.timer = setTimeout(() => this.open(), after);
    }
  }

  end(): void {
    this.ended = true;
    clearTimeout(this.timer);
    this.source?.close();
  }
}

/** What is shown of `overview`, or of `job/NAME`, as it changes, unless `paused`. */
export function useLive(watched: string, paused: boolean): Shown {
  const [, again] = useReducer((count: number) => count + 1, 0);
  const stream = useRef<Stream | undefined>(undefined);
  const kept = useRef<Shown | undefined>(undefined);
  const isPaused = useRef(paused);
  isPaused.current = paused;
  useEffect(() => {
    const path = watched === "overview" ? watched : `jobs/${encodeURIComponent(watched.slice(4))}`;
    const opened = new Stream(path, watched, () => {
      if (!isPaused.current) {
        again(0);
      }
    });
    stream.current = opened;
    again(0);
    return () => opened.end();
  }, [watched]);
  const now = stream.current?.shown ?? first(watched);
  if (!paused || !kept.current) {
    kept.current = now;
  }
  return kept.current;
}

/** The answer of a path, asked again every so many milliseconds; `undefined` until it is there. */
export function useAnswer<T>(path: string | undefined, everyMs: number): { value: T | undefined; trouble: string } {
  const [, again] = useReducer((count: number) => count + 1, 0);
  const answer = useRef<{ path?: string; value: T | undefined; trouble: string }>({ value: undefined, trouble: "" });
  useEffect(() => {
    if (path === undefined) {
      return undefined;
    }
    let ended = false;
    const ask = async () => {
      try {
        const response = await fetch(path);
        const found = response.ok
          ? { path, value: (await response.json()) as T, trouble: "" }
          : { path, value: undefined, trouble: await response.text() };
        if (!ended) {
          answer.current = found;
        }
      } catch {
        if (!ended) {
          answer.current = { ...answer.current, trouble: "The node does not answer." };
        }
      }
      if (!ended) {
        again(0);
      }
    };
    void ask();
    const timer = everyMs > 0 ? setInterval(() => void ask(), everyMs) : undefined;
    return () => {
      ended = true;
      clearInterval(timer);
    };
  }, [path, everyMs]);
  return answer.current.path === path ? answer.current : { value: undefined, trouble: answer.current.trouble };
}
