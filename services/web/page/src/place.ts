// Where one is: the address holds what is shown, so a link shows another person the same.

import { useEffect, useState } from "preact/hooks";

export interface Place {
  page: "cluster" | "jobs" | "metrics" | "job";
  /** Of the page of a job. */
  job: string;
  tab: string;
  task: number | undefined;
  /** Text that jobs or hosts have in them. */
  find: string;
  /** Letters of the states that are shown; empty: all. */
  states: string;
  table: boolean;
  function: string;
}

const NAMES: Record<string, Place["page"]> = { jobs: "jobs", metrics: "metrics", "": "cluster" };

export function read(): Place {
  const parts = location.pathname.replace(/^\/ui\/?/, "").split("/");
  const query = new URLSearchParams(location.search);
  const task = query.get("task");
  const isJob = parts[0] === "job" && parts[1] !== undefined;
  return {
    page: isJob ? "job" : (NAMES[parts[0] ?? ""] ?? "cluster"),
    job: isJob ? decodeURIComponent(parts[1]!) : "",
    tab: query.get("tab") ?? "tasks",
    task: task !== null && /^\d+$/.test(task) ? Number(task) : undefined,
    find: query.get("find") ?? "",
    states: query.get("states") ?? "",
    table: query.get("view") === "table",
    function: query.get("function") ?? "",
  };
}

export function address(place: Place): string {
  const path =
    place.page === "job" ? `/ui/job/${encodeURIComponent(place.job)}` : `/ui/${place.page === "cluster" ? "" : place.page}`;
  const query = new URLSearchParams();
  if (place.tab !== "tasks") query.set("tab", place.tab);
  if (place.task !== undefined) query.set("task", String(place.task));
  if (place.find) query.set("find", place.find);
  if (place.states) query.set("states", place.states);
  if (place.table) query.set("view", "table");
  if (place.function) query.set("function", place.function);
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

/** Where another node has its page, if this one is where nodes announce theirs: a port of its own is announced by none. */
export function elsewhere(http: string, path: string): string | undefined {
  return document.getElementById("app")!.dataset.links === undefined ? undefined : `${location.protocol}//${http}${path}`;
}

const listeners = new Set<() => void>();

/** Goes there; `quietly`: as a step that one does not go back to. */
export function go(change: Partial<Place>, quietly = false): void {
  const place = { ...read(), ...change };
  history[quietly ? "replaceState" : "pushState"](null, "", address(place));
  for (const listener of listeners) listener();
}

/** Another page, of which nothing is chosen yet. */
export function fresh(page: Place["page"], job = ""): Place {
  return { page, job, tab: "tasks", task: undefined, find: "", states: "", table: false, function: "" };
}

export function usePlace(): Place {
  const [place, setPlace] = useState(read);
  useEffect(() => {
    const changed = () => setPlace(read());
    listeners.add(changed);
    addEventListener("popstate", changed);
    return () => {
      listeners.delete(changed);
      removeEventListener("popstate", changed);
    };
  }, []);
  return place;
}

/** A link within the page does not load it again. */
export function followLinks(event: MouseEvent): void {
  const link = (event.target as Element).closest?.("a");
  const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.defaultPrevented;
  if (!link || !isPlain || link.origin !== location.origin || link.target) return;
  if (!/^\/ui\/($|jobs$|metrics$|job\/)/.test(link.pathname)) return;
  event.preventDefault();
  history.pushState(null, "", link.href);
  for (const listener of listeners) listener();
}
