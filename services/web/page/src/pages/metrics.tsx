import { Chart } from "../chart";
import { type Fields, useAnswer } from "../live";

const ASKED_EVERY_MS = 5_000;

/** This node's figures of the last quarter of an hour. */
export function Metrics({ node }: { node: number | undefined }) {
  const { value, trouble } = useAnswer<Fields>("/ui/api/v1/metrics", ASKED_EVERY_MS);
  const times = ((value?.at_ms ?? []) as number[]).map((at) => at / 1000);
  return (
    <>
      <h1>Metrics of {node === undefined ? "this node" : `node ${node}`}</h1>
      <p class="soft">
        The last quarter of an hour, a look each 5 s, in this node's memory. All figures are at <a href="/metrics">/metrics</a>.
      </p>
      {trouble ? <p class="banner bad">! {trouble}</p> : null}
      {times.length === 0 && value ? <p>Nothing was looked at yet.</p> : null}
      <div class="sparks">
        {times.length === 0
          ? null
          : (value!.series as Fields[]).map((series) => <Spark key={series.name + series.label} series={series} times={times} />)}
      </div>
    </>
  );
}

function Spark({ series, times }: { series: Fields; times: number[] }) {
  const values = series.values as (number | null)[];
  const last = values.findLast((value) => value !== null);
  const told = last === undefined || last === null ? "none now" : short(last);
  const name = series.label ? `${series.name}{${series.label}}` : series.name;
  return (
    <article class="spark">
      <h2>
        {name} <strong>{told}</strong>
      </h2>
      <Chart times={times} values={values} label={`${name}, ${told} now`} height={56} />
      <p class="soft">{series.help}</p>
    </article>
  );
}

function short(value: number): string {
  const size = Math.abs(value);
  if (size >= 1e9) return `${(value / 1e9).toFixed(2)} G`;
  if (size >= 1e6) return `${(value / 1e6).toFixed(2)} M`;
  return Number.isInteger(value) ? String(value) : value.toPrecision(3);
}
