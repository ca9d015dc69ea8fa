digraph graph_0x2400d8059c20 {
  node [shape=box];
  "node_42661" [label="memcpy"];
}
