digraph graph_0x24002402de10 {
  node [shape=box];
  "node_22047" [label="memcpy\n256 x 1 x 1 bytes\n0x28006c02dd40"];
}
