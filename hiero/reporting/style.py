"""The style sheet of a report."""

STYLE = """
:root {
  color-scheme: light dark;
  --ink: #1c2128; --dim: #5b6570; --paper: #ffffff; --soft: #f3f5f8; --rule: #d8dee5; --link: #1f5fa8;
  --good: #1a7f37; --bad: #b3261e; --warm: #8a5a00;
  --c0: #1f4e9c; --c1: #c2571a; --c2: #2e7d32; --c3: #7b1fa2; --c4: #555555;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #e3e8ee; --dim: #9aa5b1; --paper: #14181d; --soft: #1d232a; --rule: #353e48; --link: #84b6f4;
    --good: #57c776; --bad: #ff8a80; --warm: #e3b341;
    --c0: #7aaaf5; --c1: #f0965c; --c2: #7fcf86; --c3: #cf9cf0; --c4: #b0b0b0;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0 auto; max-width: 68rem; padding: clamp(0.9rem, 3vw, 2.2rem);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, Helvetica, Arial, sans-serif;
  color: var(--ink); background: var(--paper); overflow-wrap: anywhere;
}
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 0.3rem; }
h2 { font-size: 1.3rem; margin: 2.4rem 0 0.7rem; padding-bottom: 0.2rem; border-bottom: 1px solid
  var(--rule); }
h3 { font-size: 1.05rem; margin: 1.5rem 0 0.5rem; }
h4 { font-size: 0.95rem; margin: 1rem 0 0.4rem; }
p { margin: 0.5rem 0; max-width: 46rem; }
a { color: var(--link); }
.dim, small { color: var(--dim); }
nav ul { display: flex; flex-wrap: wrap; gap: 0.3rem 1.1rem; list-style: none; margin: 1rem 0 0; padding: 0;
  }
.state { font-weight: 600; }
.done { color: var(--good); } .stopped { color: var(--bad); }
.running, .not-done, .warm { color: var(--warm); }
.problems { background: var(--soft); border-left: 4px solid var(--warm); padding: 0.6rem 0.9rem; margin:
  1rem 0; }
.problems ul { margin: 0.3rem 0 0; padding-left: 1.2rem; }
.tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(9.5rem, 1fr)); gap: 0.7rem; margin:
  1.2rem 0; }
.tiles > div { background: var(--soft); border-radius: 0.5rem; padding: 0.6rem 0.8rem; }
.tiles dt { font-size: 0.85rem; color: var(--dim); }
.tiles dd { margin: 0; font-size: 1.3rem; font-weight: 600; font-variant-numeric: tabular-nums; }
.tiles small { display: block; font-weight: 400; font-size: 0.8rem; }
.scroll { overflow-x: auto; max-width: 100%; margin: 0.5rem 0; }
table { border-collapse: collapse; font-size: 0.92rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 0.28rem 0.7rem 0.28rem 0; vertical-align: baseline; border-bottom: 1px
  solid var(--rule);
  unicode-bidi: isolate; overflow-wrap: normal; }
th { font-weight: 600; color: var(--dim); font-size: 0.85rem; white-space: nowrap; }
td.n, th.n { text-align: right; white-space: nowrap; }
td.name { white-space: nowrap; }
pre { background: var(--soft); border-radius: 0.4rem; padding: 0.7rem 0.9rem; font-size: 0.85rem;
  white-space: pre-wrap; }
code, pre { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
code { font-size: 0.9em; unicode-bidi: isolate; }
details { margin: 0.5rem 0; }
summary { cursor: pointer; color: var(--link); }
figure { margin: 0.8rem 0; }
.sets { display: grid; gap: 0 1.5rem;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 20rem), 1fr)); }
.sets.wide { display: block; }
.sets > div { min-width: 0; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 1rem;
  }
.charts figure { margin: 0; }
.charts svg { display: block; width: 100%; height: auto; max-width: 42rem; }
.charts .scroll svg { min-width: 32rem; }
svg .ink { fill: var(--ink); } svg .grid { stroke: var(--rule); } svg .frame { stroke: var(--dim); }
svg .back { fill: none; } svg .mass { fill: var(--rule); stroke: none; }
svg .line0 { stroke: var(--c0); } svg .line1 { stroke: var(--c1); } svg .line2 { stroke: var(--c2); }
svg .line3 { stroke: var(--c3); } svg .line4 { stroke: var(--c4); }
svg .dots, svg .dots * { stroke: none; }
svg .line0.dots, svg .line0.dots * { fill: var(--c0); } svg .line1.dots * { fill: var(--c1); }
svg .line2.dots * { fill: var(--c2); } svg .line3.dots * { fill: var(--c3); } svg .line4.dots * { fill:
  var(--c4); }
.bar { display: inline-block; position: relative; width: 7rem; height: 0.7rem; background: var(--soft); }
.bar > span { position: absolute; top: 0; bottom: 0; }
.bar .plus { background: var(--c0); } .bar .minus { background: var(--c1); }
.time { display: inline-block; height: 0.7rem; background: var(--c0); min-width: 1px; }
.example { border: 1px solid var(--rule); border-radius: 0.5rem; padding: 0.3rem 0.9rem 0.6rem; margin: 1rem
  0; }
.example h3 { margin-top: 0.6rem; }
.texts { margin: 0; }
.texts dt { font-size: 0.82rem; color: var(--dim); margin-top: 0.5rem; }
.texts dd { margin: 0; unicode-bidi: isolate; }
.miss { text-decoration: underline wavy var(--bad) 1px; text-underline-offset: 0.2em; }
@media print {
    :root { color-scheme: light; --ink: #000; --dim: #444; --paper: #fff; --soft: #f3f3f3; --rule: #bbb;
    --link: #000;
        --good: #000; --bad: #000; --warm: #000; --c0: #1f4e9c; --c1: #c2571a; --c2: #2e7d32; --c3: #7b1fa2;
      --c4: #555; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  nav { display: none; }
  .scroll { overflow: visible; }
  .charts .scroll svg { min-width: 0; }
  table { font-size: 8.5pt; }
  th, td, td.n, th.n, td.name { white-space: normal; }
  tr, figure, .tiles > div { break-inside: avoid; }
  h2, h3, h4 { break-after: avoid; }
}
"""
