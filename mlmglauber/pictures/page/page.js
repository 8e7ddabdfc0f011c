"use strict";
(() => {
  const page = JSON.parse(document.getElementById("figure").textContent);
  const place = document.getElementById("picture");
  const config = {displaylogo: false, responsive: true,
                  modeBarButtons: [["toImage"], ["zoom2d", "pan2d"], ["zoomIn2d", "zoomOut2d", "resetScale2d"]]};

  const SHARE = 0.76;  // of the width of a picture that an axis has at least, beside its labels
  const WIDER = 1.25;  // factor by which an axis may be wider than the one for which its texts were chosen

  /* Number of the steps, which ascend, that are at most `step`. */
  function count(steps, step) {
    let low = 0;
    let high = steps.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (steps[middle] <= step) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /* Show the states of the chains up to a step: cut from the whole chains, since plotly writes into the figure. */
  const whole = page.data.map(({meta, x, y, hovertext, marker}) => ({meta, x, y, hovertext, color: marker?.color}));
  async function showUntil(step) {
    const traces = [];
    const update = {x: [], y: [], hovertext: [], "marker.color": []};
    whole.forEach((trace, k) => {
      if (trace.meta !== "chain") return;
      const shown = count(trace.color, step);
      const ends = whole[k + 1];  // the last and the first state of the chain
      const last = shown - 1;
      traces.push(k, k + 1);
      for (const name of ["x", "y", "hovertext"]) {
        update[name].push(trace[name].slice(0, shown));
        update[name].push(shown ? [trace[name][last], trace[name][0]] : []);
      }
      update["marker.color"].push(trace.color.slice(0, shown), ends.color);
    });
    await Plotly.restyle(place, update, traces);
  }

  function follow() {
    const slider = document.getElementById("time");
    const output = document.getElementById("step");
    let wanted = slider.valueAsNumber;
    let shown = wanted;
    let busy = false;
    async function catchUp() {  // a slow drawing skips the steps that the slider has passed meanwhile
      if (busy) return;
      busy = true;
      while (shown !== wanted) {
        shown = wanted;
        await showUntil(page.stops[shown]);
      }
      busy = false;
    }
    function moved() {
      wanted = slider.valueAsNumber;
      output.textContent = page.stops[wanted].toLocaleString("en");
      catchUp();
    }
    slider.addEventListener("input", moved);
    moved();
  }

  const pen = document.createElement("canvas").getContext("2d");
  pen.font = "11px system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif";
  const widths = new Map();

  /* Width in pixels of a text of a trace. */
  function width(text) {
    if (!widths.has(text)) {
      const plain = text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
      widths.set(text, pen.measureText(plain).width);
    }
    return widths.get(text);
  }

  /* The texts that have room from x = low to high, where x = 1 is `unit` pixels, each in its longest form that fits. */
  function fitting(texts, low, high, unit) {
    const parts = {x: [], y: [], text: [], "textfont.color": []};
    for (const [first, last, y, forms, color] of texts) {
      const left = Math.max(first, low);
      const right = Math.min(last, high);
      const form = right > left ? forms.find((each) => width(each) + 6 <= (right - left) * unit) : undefined;
      if (form === undefined) continue;
      parts.x.push((left + right) / 2);
      parts.y.push(y);
      parts.text.push(form);
      parts["textfont.color"].push(color);
    }
    return parts;
  }

  /* Write texts before the first drawing, in axes that are rather too short than too long: another takes its time. */
  const drawn = page.fitted.map(({trace, texts}) => {
    const [low, high] = page.layout[`xaxis${page.data[trace].xaxis.slice(1)}`].range;
    const unit = SHARE * place.clientWidth / (high - low);
    const {x, y, text, "textfont.color": color} = fitting(texts, low, high, unit);
    Object.assign(page.data[trace], {x, y, text, textfont: {...page.data[trace].textfont, color}});
    return {low, high, unit};
  });

  /* Write the texts that have room after a zoom, or in a window of another width. */
  async function fit() {
    const traces = [];
    const update = {x: [], y: [], text: [], "textfont.color": []};
    page.fitted.forEach(({trace, texts}, k) => {
      const axis = place._fullLayout[`xaxis${page.data[trace].xaxis.slice(1)}`];
      const [low, high] = axis.range;
      const unit = axis._length / (high - low);
      const same = drawn[k].low === low && drawn[k].high === high;
      if (same && unit >= drawn[k].unit && unit <= WIDER * drawn[k].unit) return;
      drawn[k] = {low, high, unit};
      const parts = fitting(texts, low, high, unit);
      traces.push(trace);
      for (const name of Object.keys(update)) update[name].push(parts[name]);
    });
    if (traces.length) await Plotly.restyle(place, update, traces);
  }

  Plotly.newPlot(place, page.data, page.layout, config).then(async () => {
    if (page.stops.length > 1) follow();
    if (page.fitted.length) {
      place.on("plotly_afterplot", fit);
      await fit();
    }
    document.documentElement.dataset.drawn = "yes";
  });
})();
