import { useEffect, useMemo, useState } from "preact/hooks";
import { ageOf, counts, STATES, stateOf } from "../letters";
import type { Fields, Shown } from "../live";
import { address, go, type Place } from "../place";
import { areKnown, Glyph, groupsOf, type Hosts, Strip } from "../strip";
import { Table } from "../table";

/** How often a screen reader is told what has changed, at most. */
const TOLD_EVERY_MS = 2_000;

/** The words as they were at most so long ago. */
function useSeldom(words: string): string {
  const [told, setTold] = useState(words);
  useEffect(() => {
    const timer = setTimeout(() => setTold(words), TOLD_EVERY_MS);
    return () => clearTimeout(timer);
  }, [words]);
  return told;
}

/** The strip and its table. */
export function Tasks({ shown, place, words }: { shown: Shown; place: Place; words: string }) {
  const { fields, states, beats } = shown;
  const hosts = fields.hosts as Hosts | undefined;
  // What a frame does not name stays the same object.
  const groups = useMemo(() => groupsOf(hosts, states.length), [hosts, states.length]);
  const found = useMemo(() => counts(states), [states]);
  const told = useSeldom(words);
  const places = useMemo(() => groups.flatMap((group) => Array<string>(group.count).fill(group.name)), [groups]);
  const hostOf = (task: number) => places[task] ?? "";
  const known = areKnown(hosts);
  const listed = useMemo(() => {
    const all = Array.from(states.keys());
    const byState = place.states ? all.filter((task) => place.states.includes(String.fromCharCode(states[task]!))) : all;
    return place.find && known ? byState.filter((task) => hostOf(task).includes(place.find)) : byState;
  }, [states, place.states, place.find, groups]);
  const toggle = (letter: string) => {
    const has = place.states.includes(letter);
    go({ states: has ? place.states.replace(letter, "") : place.states + letter }, true);
  };
  return (
    <section aria-label="Tasks">
      <p class="hidden" aria-live="polite">
        {told}
      </p>
      <div class="legend" role="group" aria-label="Show states">
        {STATES.filter((state) => found.has(state.letter) || place.states.includes(state.letter)).map((state) => (
          <button type="button" aria-pressed={place.states.includes(state.letter)} onClick={() => toggle(state.letter)}>
            <Glyph state={state} /> {state.word} {found.get(state.letter) ?? 0}
          </button>
        ))}
        <button type="button" aria-pressed={place.table} onClick={() => go({ table: !place.table }, true)}>
          Table
        </button>
      </div>
      {place.table ? null : (
        <Strip
          states={states}
          groups={groups}
          filter={place.states}
          chosen={place.task}
          label={`Strip of ${states.length} tasks: ${told}.`}
          open={(task) => go({ task })}
        />
      )}
      <div class={place.table ? "" : "hidden"}>
        <Table
          label="Tasks"
          columns={["Task", "State", "Host", "Heard"]}
          widths="5rem 9rem minmax(6rem, 1fr) 8rem"
          rows={listed.length}
          open={(row) => go({ task: listed[row]! })}
          cells={(row) => {
            const task = listed[row]!;
            const state = stateOf(states[task]!);
            return [
              <a href={address({ ...place, task })} tabIndex={place.table ? 0 : -1}>
                {task}
              </a>,
              <>
                <Glyph state={state} /> {state.word}
              </>,
              known ? hostOf(task) : "not said",
              beats.length > 0 ? `${ageOf(beats[task])}${beats[task] === 63 ? "" : " ago"}` : "unknown",
            ];
          }}
        />
      </div>
      <Troubles troubles={(fields.troubles ?? []) as Fields[]} place={place} />
    </section>
  );
}

function Troubles({ troubles, place }: { troubles: Fields[]; place: Place }) {
  if (troubles.length === 0) return null;
  return (
    <>
      <h2>Errors</h2>
      <ul>
        {troubles.map((trouble) => (
          <li>
            <a href={address({ ...place, task: trouble.task })}>task {trouble.task}</a>: {trouble.text}
          </li>
        ))}
      </ul>
    </>
  );
}
