// The strip: a cell for each task, by host if that is known and by ranges if not. Thousands of elements would take seconds, so
// it is a canvas; beside it stand the same in words and as a table.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { STATES, stateOf, type State } from "./letters";

/** Tasks of a group without hosts. */
const RANGE = 64;

export interface Group {
  name: string;
  first: number;
  count: number;
}

/** Names, and runs of tasks on them: from which name on, how many names, how many tasks on each. */
export interface Hosts {
  names: string[];
  runs: [number, number, number][];
}

export function areKnown(hosts: Hosts | undefined): hosts is Hosts {
  return hosts !== undefined && hosts.names.some((name) => name !== "");
}

/** Tasks that follow each other on a host, or in a range. */
export function groupsOf(hosts: Hosts | undefined, tasks: number): Group[] {
  const groups: Group[] = [];
  if (areKnown(hosts)) {
    let first = 0;
    for (const [from, names, count] of hosts.runs) {
      for (const name of hosts.names.slice(from, from + names)) {
        groups.push({ name: name || "host unknown", first, count });
        first += count;
      }
    }
    return groups;
  }
  for (let first = 0; first < tasks; first += RANGE) {
    const count = Math.min(RANGE, tasks - first);
    groups.push({ name: `${first}-${first + count - 1}`, first, count });
  }
  return groups;
}

/** Draws a state's shape in its colour; each is another shape. */
export function draw(context: CanvasRenderingContext2D, state: State, x: number, y: number, size: number, dim: boolean): void {
  const colour = getComputedStyle(document.documentElement).getPropertyValue(state.colour).trim();
  const edge = Math.max(1, size / 7);
  const middle = size / 2;
  context.save();
  context.translate(x, y);
  context.globalAlpha = dim ? 0.18 : 1;
  context.fillStyle = colour;
  context.strokeStyle = colour;
  context.lineWidth = edge;
  context.beginPath();
  switch (state.shape) {
    case "square":
      context.fillRect(0, 0, size, size);
      break;
    case "dot":
      context.arc(middle, middle, size / 4, 0, 7);
      context.fill();
      break;
    case "triangle":
      context.moveTo(middle, 0);
      context.lineTo(size, size);
      context.lineTo(0, size);
      context.fill();
      break;
    case "half":
      context.fillRect(0, middle, size, middle);
      context.strokeRect(edge / 2, edge / 2, size - edge, size - edge);
      break;
    case "cross":
      context.lineWidth = edge * 1.6;
      context.moveTo(edge, edge);
      context.lineTo(size - edge, size - edge);
      context.moveTo(size - edge, edge);
      context.lineTo(edge, size - edge);
      context.stroke();
      break;
    case "ring":
      context.arc(middle, middle, middle - edge, 0, 7);
      context.stroke();
      break;
    case "frame":
      context.strokeRect(edge / 2, edge / 2, size - edge, size - edge);
      break;
    case "dash":
      context.fillRect(0, middle - edge, size, edge * 1.5);
      break;
    case "box":
      context.strokeRect(edge / 2, edge / 2, size - edge, size - edge);
      context.moveTo(0, 0);
      context.lineTo(size, size);
      context.moveTo(size, 0);
      context.lineTo(0, size);
      context.stroke();
      break;
    case "bang":
      context.fillRect(middle - edge, 0, edge * 2, size * 0.62);
      context.fillRect(middle - edge, size * 0.78, edge * 2, size * 0.22);
      break;
  }
  context.restore();
}

/** One shape, as the legend has it. */
export function Glyph({ state }: { state: State }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!context) return;
    const scale = devicePixelRatio || 1;
    context.canvas.width = context.canvas.height = Math.round(14 * scale);
    context.scale(scale, scale);
    draw(context, state, 1, 1, 12, false);
  });
  return <canvas ref={canvas} class="glyph" aria-hidden="true" />;
}

interface Layout {
  cell: number;
  places: Float32Array;
  height: number;
  labels: { text: string; x: number; y: number }[];
}

/** Where each cell is. */
function layout(groups: Group[], tasks: number, width: number): Layout {
  const cell = tasks <= 64 ? 18 : tasks <= 600 ? 14 : tasks <= 2_500 ? 10 : 6;
  const step = cell + (cell > 8 ? 2 : 1);
  const places = new Float32Array(tasks * 2);
  const labels: Layout["labels"] = [];
  const labelled = groups.length <= 200 && groups.length > 1;
  const head = labelled ? 14 : 0;
  let x = 0;
  let y = 0;
  const gap = labelled ? 12 : groups.length > 1 ? Math.ceil(step / 2) : 0;
  for (const group of groups) {
    const wide = Math.max(group.count * step, labelled ? group.name.length * 6.6 : 0);
    if (x > 0 && x + Math.min(wide, width) > width) {
      x = 0;
      y += step + head;
    }
    if (labelled) labels.push({ text: group.name, x, y: y + 10 });
    for (let place = 0; place < group.count; place += 1) {
      if (x + step > width) {
        x = 0;
        y += step;
      }
      places[2 * (group.first + place)] = x;
      places[2 * (group.first + place) + 1] = y + head;
      x += step;
    }
    x = labelled ? Math.max(x, (labels.at(-1)?.x ?? 0) + group.name.length * 6.6) + gap : x + gap;
  }
  return { cell, places, height: y + step + head, labels };
}

interface Props {
  states: Uint8Array;
  groups: Group[];
  /** Letters that are not dimmed; empty: all. */
  filter: string;
  chosen: number | undefined;
  /** Says what is in it. */
  label: string;
  open: (task: number) => void;
}

/** The theme, so that colours are drawn anew when it changes. */
function useTheme(): number {
  const [count, setCount] = useState(0);
  useEffect(() => {
    const changed = () => setCount((before) => before + 1);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", changed);
    const watcher = new MutationObserver(changed);
    watcher.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    return () => {
      dark.removeEventListener("change", changed);
      watcher.disconnect();
    };
  }, []);
  return count;
}

export function Strip({ states, groups, filter, chosen, label, open }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(0);
  const [cursor, setCursor] = useState(chosen ?? 0);
  const [focused, setFocused] = useState(false);
  const theme = useTheme();
  const drawn = useRef<{ states: Uint8Array; key: string } | undefined>(undefined);
  const plan = useMemo(() => layout(groups, states.length, Math.max(width, 60)), [groups, states.length, width]);
  useEffect(() => {
    const box = canvas.current?.parentElement;
    if (!box) return undefined;
    const measure = () => setWidth(Math.floor(box.clientWidth));
    measure();
    const watcher = new ResizeObserver(measure);
    watcher.observe(box);
    return () => watcher.disconnect();
  }, []);
  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!context || width === 0) return;
    const scale = devicePixelRatio || 1;
    const key = `${width} ${plan.height} ${filter} ${theme} ${scale} ${groups.length} ${focused ? cursor : -1} ${chosen}`;
    const old = drawn.current?.key === key && drawn.current.states.length === states.length ? drawn.current.states : undefined;
    if (!old) {
      context.canvas.width = Math.round(width * scale);
      context.canvas.height = Math.round(plan.height * scale);
      context.setTransform(scale, 0, 0, scale, 0, 0);
      context.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--soft");
      context.font = "11px system-ui, sans-serif";
      for (const { text, x, y } of plan.labels) context.fillText(text, x, y);
    }
    const shapes = sprites(plan.cell, scale, filter);
    for (let task = 0; task < states.length; task += 1) {
      const letter = states[task]!;
      if (old && old[task] === letter) continue;
      const [x, y] = [plan.places[2 * task]!, plan.places[2 * task + 1]!];
      if (old) context.clearRect(x, y, plan.cell, plan.cell);
      context.drawImage(shapes.get(letter) ?? shapes.get(102)!, x, y, plan.cell, plan.cell);
    }
    context.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--text");
    context.lineWidth = 2;
    for (const task of [chosen, focused ? cursor : undefined]) {
      if (task !== undefined && task < states.length) {
        context.strokeRect(plan.places[2 * task]! - 1, plan.places[2 * task + 1]! - 1, plan.cell + 2, plan.cell + 2);
      }
    }
    drawn.current = { states, key };
  });
  const at = (event: MouseEvent): number | undefined => {
    const step = plan.cell + 2;
    for (let task = 0; task < states.length; task += 1) {
      const [dx, dy] = [event.offsetX - plan.places[2 * task]!, event.offsetY - plan.places[2 * task + 1]!];
      if (dx >= 0 && dx < step && dy >= 0 && dy < step) return task;
    }
    return undefined;
  };
  const keys = (event: KeyboardEvent) => {
    const row = Math.max(1, Math.floor(width / (plan.cell + 2)));
    const steps: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -row, ArrowDown: row };
    if (event.key === "Enter") open(cursor);
    else if (event.key === "Home") setCursor(0);
    else if (event.key === "End") setCursor(states.length - 1);
    else if (steps[event.key] !== undefined) {
      setCursor(Math.min(states.length - 1, Math.max(0, cursor + steps[event.key]!)));
    } else return;
    event.preventDefault();
  };
  const under = focused && states.length > 0 ? `task ${cursor}: ${stateOf(states[cursor]!).word}` : "";
  return (
    <div class="strip">
      <canvas
        ref={canvas}
        style={{ width: `${width}px`, height: `${plan.height}px` }}
        tabIndex={0}
        role="img"
        aria-label={`${label} ${under}`}
        onFocus={() => setFocused(true)}
        onBlur={() => setFocused(false)}
        onKeyDown={keys}
        onClick={(event) => {
          const task = at(event);
          if (task !== undefined) open(task);
        }}
        onMouseMove={(event) => {
          const task = at(event);
          event.currentTarget.title = task === undefined ? "" : `task ${task}: ${stateOf(states[task]!).word}`;
        }}
      />
      <p class="under" aria-hidden="true">
        {under || "Arrows move in the strip, Enter opens a task, t shows a table."}
      </p>
    </div>
  );
}

/** Every shape once, as a picture that is copied. */
function sprites(size: number, scale: number, filter: string): Map<number, HTMLCanvasElement> {
  const made = new Map<number, HTMLCanvasElement>();
  for (const state of STATES) {
    const picture = document.createElement("canvas");
    picture.width = picture.height = Math.ceil(size * scale);
    const context = picture.getContext("2d")!;
    context.scale(scale, scale);
    draw(context, state, 0, 0, size, filter !== "" && !filter.includes(state.letter));
    made.set(state.letter.charCodeAt(0), picture);
  }
  return made;
}

/** A small strip of a job, for a list. */
export function SmallStrip({ states }: { states: Uint8Array }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useTheme();
  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!context) return;
    const scale = devicePixelRatio || 1;
    context.canvas.width = Math.round(32 * 8 * scale);
    context.canvas.height = Math.round(10 * scale);
    context.scale(scale, scale);
    states.forEach((letter, place) => draw(context, stateOf(letter), place * 8, 1, 7, false));
  }, [states, theme]);
  return <canvas ref={canvas} class="small" aria-hidden="true" />;
}
