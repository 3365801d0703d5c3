// Lays out a graph, aside: thousands of operations take seconds.

import * as dagre from "@dagrejs/dagre";

interface Asked {
  nodes: { id: string; width: number; height: number }[];
  edges: [string, string][];
}

self.onmessage = (event: MessageEvent<Asked>) => {
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: "LR", nodesep: 8, ranksep: 40, marginx: 8, marginy: 8 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { id, width, height } of event.data.nodes) {
    graph.setNode(id, { width, height });
  }
  for (const [from, to] of event.data.edges) {
    graph.setEdge(from, to);
  }
  dagre.layout(graph);
  const nodes = graph.nodes().map((id: string) => {
    const { x, y, width, height } = graph.node(id) as { x: number; y: number; width: number; height: number };
    return { id, x: x - width / 2, y: y - height / 2, width, height };
  });
  const edges = graph.edges().map((edge: { v: string; w: string }) => ({
    from: edge.v,
    to: edge.w,
    points: (graph.edge(edge) as { points: { x: number; y: number }[] }).points,
  }));
  const { width, height } = graph.graph() as { width?: number; height?: number };
  self.postMessage({ nodes, edges, width: width ?? 0, height: height ?? 0 });
};
