// A small chart: what grew when.

import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";

interface Props {
  /** Seconds, ascending. */
  times: number[];
  values: (number | null)[];
  label: string;
  height: number;
  steps?: boolean;
  /** The scale begins at 0 and ends no lower than this. */
  top?: number;
}

export function Chart({ times, values, label, height, steps, top }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | undefined>(undefined);
  const data: uPlot.AlignedData = [times, values];
  useEffect(() => {
    const place = box.current!;
    const style = getComputedStyle(document.documentElement);
    const made = new uPlot(
      {
        width: Math.max(120, place.clientWidth),
        height,
        legend: { show: false },
        cursor: { show: false },
        padding: [4, 4, 4, 4],
        scales: top === undefined ? {} : { y: { range: (_chart, _low, high) => [0, Math.max(top, high)] } },
        axes: [{ show: false }, { show: false }],
        series: [
          {},
          {
            stroke: style.getPropertyValue("--accent").trim(),
            fill: style.getPropertyValue("--accent-soft").trim(),
            width: 1.5,
            points: { show: times.length === 1 },
            paths: steps ? uPlot.paths.stepped!({ align: 1 }) : undefined,
          },
        ],
      },
      data,
      place,
    );
    chart.current = made;
    const watcher = new ResizeObserver(() => made.setSize({ width: Math.max(120, place.clientWidth), height }));
    watcher.observe(place);
    return () => {
      watcher.disconnect();
      made.destroy();
    };
  }, [height, steps, top]);
  useEffect(() => chart.current?.setData(data));
  return <div ref={box} class="chart" role="img" aria-label={label} />;
}
