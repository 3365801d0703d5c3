// A table of any length: a screenful of rows exists, and moves with what is scrolled.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

const ROW = 26;
/** Rows that exist. */
const POOL = 60;
const VISIBLE = 20;

interface Props {
  label: string;
  columns: string[];
  /** How wide each is, as the style of a grid. */
  widths: string;
  rows: number;
  cells: (row: number) => ComponentChildren[];
  open?: (row: number) => void;
}

export function Table({ label, columns, widths, rows, cells, open }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const [first, setFirst] = useState(0);
  const [chosen, setChosen] = useState(-1);
  const last = Math.min(rows, first + POOL);
  // Keys may come faster than what they change is drawn.
  const at = useRef(-1);
  const choose = (row: number) => {
    const next = Math.min(rows - 1, Math.max(0, row));
    at.current = next;
    setChosen(next);
    const place = box.current;
    if (!place) return;
    if (next * ROW < place.scrollTop) place.scrollTop = next * ROW;
    const bottom = (next + 1) * ROW - place.clientHeight;
    if (bottom > place.scrollTop) place.scrollTop = bottom;
  };
  useEffect(() => {
    const moved = (event: Event) => {
      const step = (event as CustomEvent<string>).detail;
      if (step === "open" && at.current >= 0) open?.(at.current);
      if (step === "next") choose(at.current + 1);
      if (step === "before") choose(at.current - 1);
    };
    addEventListener("tripod-row", moved);
    return () => removeEventListener("tripod-row", moved);
  });
  const numbers = Array.from({ length: Math.max(0, last - first) }, (_, place) => first + place);
  const grid = { gridTemplateColumns: widths };
  return (
    <div role="table" aria-label={label} aria-rowcount={rows + 1} class="table">
      <div role="rowgroup">
        <div role="row" class="head" style={grid} aria-rowindex={1}>
          {columns.map((name) => (
            <span role="columnheader">{name}</span>
          ))}
        </div>
      </div>
      <div
        ref={box}
        role="rowgroup"
        class="rows"
        tabIndex={0}
        aria-label={`${label}, rows`}
        style={{ maxHeight: `${VISIBLE * ROW}px` }}
        onScroll={(event) => {
          const top = Math.floor(event.currentTarget.scrollTop / ROW);
          setFirst(Math.max(0, Math.min(rows - POOL, top - VISIBLE)));
        }}
      >
        <div class="space" style={{ height: `${rows * ROW}px` }} role="presentation">
          {numbers.map((row) => (
            <div
              key={row % POOL}
              role="row"
              aria-rowindex={row + 2}
              aria-selected={row === chosen}
              class={row === chosen ? "row chosen" : "row"}
              style={{ ...grid, transform: `translateY(${row * ROW}px)` }}
              onClick={(event) => {
                if (!(event.target as Element).closest("a")) open?.(row);
              }}
            >
              {cells(row).map((cell) => (
                <span role="cell">{cell}</span>
              ))}
            </div>
          ))}
        </div>
      </div>
    </div>
  );
}
