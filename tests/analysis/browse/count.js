// Runs the browser's counting in Node: argv has the folder of the view and a JSON file of jobs,
// each with a folder of data files and states; prints what is selected for each state.
"use strict";
const fs = require("fs"), path = require("path"), vm = require("vm");
const [view, jobs] = process.argv.slice(2);
const code = ["data", "count"].map(name => fs.readFileSync(path.join(view, `${name}.js`), "utf8"));
const plain = found => ({
  kinds: [...found.kinds], classes: [...found.classes], groups: [...found.groups],
  cells: [...found.cells], cases: [...found.cases], perImage: [...found.perImage],
  slices: [...found.slices].map(([p, counts]) => [p, [...counts]]),
});
const results = JSON.parse(fs.readFileSync(jobs, "utf8")).map(({folder, states, open}) => {
  const context = vm.createContext({atob, states, open, plain, results: []});
  vm.runInContext('"use strict";' + code.join("\n") + ";globalThis.api = {readModel, select, totals, stepOf, ordered, images};", context);
  for (const name of fs.readdirSync(folder)) vm.runInContext(fs.readFileSync(path.join(folder, name), "utf8"), context);
  return vm.runInContext(`(() => {
    const model = api.readModel();
    return states.map(state => {
      const found = api.select(model, state, open), s = found.steps[state.det];
      return {...plain(found), totals: api.totals(model, state.det, s),
        ordered: [...api.ordered(model, {...state, order: "high"}, found.cases)],
        bySize: [...api.ordered(model, {...state, order: "size"}, found.cases)],
        images: [...api.images(model, {...state, order: "high", least: 0}, found.perImage, true)]};
    });
  })()`, context);
});
process.stdout.write(JSON.stringify(results));
