// Everything by keyboard. Keys count where nobody writes.

import { fresh, go, read } from "./place";

export const KEYS: [string, string][] = [
  ["/", "find a job or a host"],
  ["j, k", "the next row, the one before; Enter opens it"],
  ["g c", "the cluster"],
  ["g j", "the jobs"],
  ["g m", "the metrics of this node"],
  ["g t", "the tasks of this job"],
  ["g b", "the barriers of this job"],
  ["g s", "the scheduler of this job"],
  ["g o", "the object stores of this job"],
  ["t", "the tasks as a table or as a strip"],
  [".", "stop and go on with live data"],
  ["?", "this list"],
  ["Escape", "close it, or leave the task"],
];

export interface Actions {
  help: (open?: boolean) => void;
  pause: () => void;
}

const row = (step: string) => dispatchEvent(new CustomEvent("tripod-row", { detail: step }));

/** Listens until what it gives is called. */
export function listen(actions: Actions): () => void {
  let prefix = false;
  const pressed = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const writes = (event.target as Element).matches?.("input, select, textarea");
    if (event.key === "Escape") {
      if (writes) (event.target as HTMLElement).blur();
      actions.help(false);
      if (read().task !== undefined && !writes) go({ task: undefined });
      return;
    }
    if (writes) return;
    const place = read();
    const inJob = place.page === "job";
    if (prefix) {
      prefix = false;
      const tabs: Record<string, string> = { t: "tasks", b: "barriers", s: "scheduler", o: "stores" };
      if (event.key === "c") go(fresh("cluster"));
      else if (event.key === "j") go(fresh("jobs"));
      else if (event.key === "m") go(fresh("metrics"));
      else if (inJob && tabs[event.key]) go({ tab: tabs[event.key]!, task: undefined });
      else return;
    } else if (event.key === "g") prefix = true;
    else if (event.key === "/") document.getElementById("find")?.focus();
    else if (event.key === "?") actions.help();
    else if (event.key === ".") actions.pause();
    else if (event.key === "j") row("next");
    else if (event.key === "k") row("before");
    else if (event.key === "Enter" && !(event.target as Element).matches?.("a, button, summary, canvas")) row("open");
    else if (event.key === "t" && inJob) go({ table: !place.table }, true);
    else return;
    event.preventDefault();
  };
  addEventListener("keydown", pressed);
  return () => removeEventListener("keydown", pressed);
}
