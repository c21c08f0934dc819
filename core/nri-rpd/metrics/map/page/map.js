// SPDX-License-Identifier: Apache-2.0
// The page: what is shown of the documents that nri-rpd serves, and what people do with it.
import {bytes, columns, ids, memoryOnly, tree} from './layout.js';
import {placesAt} from './history.js';

const REFRESH_MS = 1000; // at most once in this time, however much happens
const AGAIN_MS = 3000;
const USAGE_MS = 5000, MACHINE_EVERY = 6; // while usage is collected: containers, and every so many times the machine
const EVENTS_MAX = 512; // as many as nri-rpd keeps
const CELL_MIN = 6, CELL_MAX = 160, CELL_FIT_MAX = 120; // pixels of a CPU
const DIGIT = 6.5; // pixels of a digit in a CPU
const SHAPES = [1, 2, 4]; // widths of grids by their heights that are tried
const SHAPES_CPUS_MAX = 1024; // above, only one shape is drawn
const COLOURS = 8; // of exclusive containers, each with a pattern of its own
const BAD_EVENTS = new Set(['refused', 'degraded', 'update-failed', 'eviction']);
const TABS = ['containers', 'details', 'events', 'try'];

const state = {
	topology: null, cells: new Map(), containers: [], events: [], at: null, // at: index of an event; null: now
	chosen: null, tried: [], cell: 0, stretch: 1, group: '', colours: new Map(), focus: null, last: 0, due: false, plan: null, after: false, rounds: 0, refreshed: 0, explained: 0,
};

const $ = (id) => document.getElementById(id);

function make(tag, props = {}, ...children) {
	const element = document.createElement(tag);
	for (const [name, value] of Object.entries(props)) {
		if (name === 'class') element.className = value;
		else if (name.includes('-') || name === 'role') element.setAttribute(name, value);
		else element[name] = value;
	}
	element.append(...children.filter((c) => c !== null && c !== undefined));
	return element;
}

async function ask(path, options) {
	const response = await fetch('map/' + path, options);
	const text = await response.text();
	let document_ = null;
	try {
		document_ = JSON.parse(text);
	} catch {
		throw new Error(text.trim() || 'HTTP ' + response.status);
	}
	if (document_.error && !response.ok) throw new Error(document_.error);
	return document_;
}

// ---- the machine ----

const LABEL = {
	package: (g) => `package ${g.id}`,
	die: (g) => `die ${g.id}`,
	node: (g) => nodeLabel(g.id, state.topology.cpus.length > SHAPES_CPUS_MAX),
	cache: (g) => `cache ${g.id}`,
};

function nodeLabel(id, short) {
	const node = state.topology.nodes.find((n) => n.node === id);
	if (short && node) return `node ${id} · ${node.type} ${bytes(node.memory)}`;
	return `node ${id}` + (node ? ` · ${node.type} ${bytes(node.memory)}${node.memory_used ? `, ${bytes(node.memory_used)} used` : ''}` : '');
}

// Writes how full the memory of the nodes is, which the labels' ground shows as well.
function showNodes() {
	for (const label of document.querySelectorAll('#machine .label[data-node]')) {
		const node = state.topology.nodes.find((n) => n.node === Number(label.dataset.node));
		label.textContent = nodeLabel(Number(label.dataset.node), state.cell < 16);
		label.title = nodeLabel(Number(label.dataset.node));
		label.style.setProperty('--fill', node?.memory_used ? `${(100 * node.memory_used / node.memory).toFixed(0)}%` : '0%');
	}
}

function drawCpu(c) {
	const cell = make('div', {class: 'cpu', role: 'gridcell', tabIndex: -1});
	cell.dataset.cpu = c.cpu;
	state.cells.set(c.cpu, {element: cell, cpu: c, shown: ''});
	return cell;
}

function drawGroup(g) {
	if (g.cpu) return drawCpu(g.cpu);
	const cpus = g.children[0].level === 'core' || g.children[0].cpu;
	const inner = make('div', {class: 'children' + (cpus ? ' cores' : '')}, ...g.children.map(drawGroup));
	const n = g.children.length, stretch = cpus || state.topology.cpus.length <= SHAPES_CPUS_MAX ? state.stretch : 1;
	inner.style.gridTemplateColumns = `repeat(${g.level === 'core' ? n : columns(n, stretch)}, max-content)`;
	const label = LABEL[g.level] ? make('div', {class: 'label'}, LABEL[g.level](g)) : null;
	if (label && g.level === 'node') label.dataset.node = g.id;
	return make('div', {class: 'group ' + g.level, role: 'presentation'}, label, inner);
}

function drawGroups() {
	const top = $('machine'), topology = state.topology;
	state.cells.clear();
	top.replaceChildren(...tree(topology).map(drawGroup));
	for (const node of memoryOnly(topology))
		top.append(make('div', {class: 'memory'}, `node ${node.node} · ${node.type} ${bytes(node.memory)}, no CPUs`));
}

function drawMachine() {
	if (state.cell) drawGroups();
	else fit();
	resize(0);
	focusCpu(state.topology.cpus[0]?.cpu, false);
}

// Returns the largest size with which all CPUs have room; CELL_MIN if there is none.
function largest() {
	const top = $('machine');
	const most = Math.ceil(Math.sqrt(top.clientWidth * top.clientHeight / state.cells.size));
	let fits = CELL_MIN, tooLarge = Math.max(CELL_MIN, Math.min(CELL_FIT_MAX, most)) + 1;
	while (tooLarge - fits > 1) {
		const size = (fits + tooLarge) >> 1;
		setSize(size);
		if (top.scrollHeight <= top.clientHeight && top.scrollWidth <= top.clientWidth) fits = size;
		else tooLarge = size;
	}
	return fits;
}

function fit() {
	const shapes = state.topology.cpus.length > SHAPES_CPUS_MAX ? [2] : SHAPES;
	let best = 0, stretch = shapes[0];
	for (const shape of shapes) {
		state.stretch = shape;
		drawGroups();
		const size = largest();
		if (size > best) [best, stretch] = [size, shape];
	}
	if (state.stretch !== stretch) {
		state.stretch = stretch;
		drawGroups();
	}
	setSize(best);
}

function setSize(size) {
	const top = $('machine');
	state.cell = size;
	top.style.setProperty('--cell', size + 'px');
	top.style.setProperty('--between', (size < 16 ? 1 : 4) + 'px');
	top.classList.toggle('small', size < 16);
	top.classList.toggle('large', size >= 40);
}

function resize(by) {
	setSize(Math.min(CELL_MAX, Math.max(CELL_MIN, Math.round(state.cell * 1.25 ** by))));
	for (const cell of state.cells.values()) cell.shown = '';
	show();
}

// ---- who is where ----

function placesNow() {
	return new Map(state.containers.filter((c) => c.state !== 'exited')
		.map((c) => [c.full_name, {cpus: c.cpus, exclusive: c.exclusive}]));
}

// The places after the planned reload. CPUs are exclusive there if the policy says so and no other container gets them.
function placesPlanned() {
	const places = placesNow(), moves = state.plan.moves.filter((m) => m.moved && places.has(m.container));
	for (const m of moves) places.set(m.container, {cpus: m.to_cpus, exclusive: m.exclusive});
	const count = new Map();
	for (const {cpus} of places.values()) for (const cpu of ids(cpus)) count.set(cpu, (count.get(cpu) ?? 0) + 1);
	for (const m of moves)
		if (ids(m.exclusive).some((cpu) => count.get(cpu) > 1)) places.get(m.container).exclusive = null;
	return places;
}

function placesShown() {
	if (state.after) return {places: placesPlanned(), unknown: new Set()};
	if (state.at === null) return {places: placesNow(), unknown: new Set()};
	return placesAt(placesNow(), state.events, state.at);
}

function byCpu(places) {
	const on = new Map();
	for (const [name, place] of places) {
		const own = new Set(ids(place.exclusive));
		for (const cpu of ids(place.cpus)) {
			if (!on.has(cpu)) on.set(cpu, {names: [], own: false, owner: null});
			const use = on.get(cpu);
			use.names.push(name);
			if (own.has(cpu)) [use.own, use.owner] = [true, name];
		}
	}
	return on;
}

// Gives each exclusive container the colour that the fewest others have; it keeps that while it is shown.
function assignColours(places) {
	const owners = [...places].filter(([, place]) => place.exclusive).map(([name]) => name), used = new Array(COLOURS).fill(0);
	state.colours = new Map(owners.filter((name) => state.colours.has(name)).map((name) => [name, state.colours.get(name)]));
	for (const colour of state.colours.values()) used[colour]++;
	for (const name of owners) {
		if (state.colours.has(name)) continue;
		const colour = used.indexOf(Math.min(...used));
		used[colour]++;
		state.colours.set(name, colour);
	}
}

function colourOf(name) {
	return 'o' + state.colours.get(name);
}

// The share of a CPU that its containers use, in percent, in steps of 5: their measured time, spread over their CPUs.
function loads() {
	const load = new Map();
	if (state.at !== null || state.after) return load;
	for (const c of state.containers) {
		const cpus = c.usage?.cpu_milli ? ids(c.cpus) : [];
		for (const cpu of cpus) load.set(cpu, (load.get(cpu) ?? 0) + c.usage.cpu_milli / 10 / cpus.length);
	}
	for (const [cpu, percent] of load) load.set(cpu, Math.min(100, Math.ceil(percent / 5) * 5));
	return load;
}

function fillOf(use) {
	if (!use) return '';
	if (use.own) return ' own ' + colourOf(use.owner);
	return use.names.length === 1 ? ' s1' : use.names.length <= 5 ? ' s2' : ' s3';
}

// "namespace/pod/container" → "pod/container", or "pod" where both are called the same
function brief(name) {
	const [, pod, container] = name.split('/');
	return pod === container ? pod : `${pod}/${container}`;
}

function textOf(cpu, use) {
	if (String(cpu).length * DIGIT + 3 > state.cell) return [];
	const parts = [make('b', {}, String(cpu))];
	if (state.cell >= 40 && use)
		parts.push(make('span', {}, use.names.length === 1 ? brief(use.names[0]) : `× ${use.names.length}`));
	return parts;
}

function show() {
	if (!state.topology) return;
	const {places, unknown} = placesShown();
	assignColours(places);
	const use = byCpu(places), isolated = new Set(ids(state.topology.isolated));
	const chosen = new Set(state.chosen ? ids(places.get(state.chosen)?.cpus) : []), tried = new Set(state.tried);
	const found = foundCpus(places), reserved = new Set(ids(state.topology.reserved));
	const load = loads();
	state.use = use;
	state.load = load;
	$('machine').classList.toggle('choosing', chosen.size + tried.size + found.size > 0);
	for (const [cpu, cell] of state.cells) {
		const on = use.get(cpu);
		const classes = 'cpu' + fillOf(on) + (isolated.has(cpu) ? ' isolated' : '') + (chosen.has(cpu) ? ' chosen' : '') +
			(tried.has(cpu) ? ' tried' : '') + (load.has(cpu) ? ' used' : '') + (found.has(cpu) ? ' found' : '') + (reserved.has(cpu) ? ' reserved' : '') + (cell.cpu.kind === 'efficient' ? ' efficient' : '');
		const shown = classes + '|' + (load.get(cpu) ?? '') + '|' + (state.cell < 40 ? '' : on?.names.join() ?? '');
		if (cell.shown === shown) continue;
		cell.shown = shown;
		cell.element.className = classes;
		if (load.has(cpu)) cell.element.style.setProperty('--load', load.get(cpu) + '%');
		const text = textOf(cpu, on);
		if (text.length || cell.element.firstChild) cell.element.replaceChildren(...text);
	}
	showNodes();
	showSummary(places, unknown);
	showContainers(places);
	labelFocus();
}

function showSummary(places, unknown) {
	const t = state.topology, n = (k, one, many) => `${k} ${k === 1 ? one : many}`;
	const idle = t.cpus.filter((c) => !state.use.has(c.cpu)).length, kept = ids(t.reserved).filter((c) => !state.use.has(c)).length;
	const unpinned = [...places.values()].filter((p) => !p.cpus).length;
	const parts = [t.policy ? `policy ${t.policy}` : 'no policy', n(t.n_packages, 'package', 'packages'), n(t.n_nodes, 'node', 'nodes'),
		n(t.n_cores, 'core', 'cores'), n(t.cpus.length, 'CPU', 'CPUs') + `, ${kept ? `${kept} reserved, ` : ''}${idle - kept} free`, n(places.size, 'container', 'containers')];
	if (unpinned) parts.push(`${unpinned} not pinned`);
	if (t.present !== t.online) parts.push(`online: ${t.online} of ${t.present}`);
	if (unknown.size) parts.push(`${unknown.size} containers unknown`);
	if (state.after) parts.push('after the planned reload');
	if (state.at !== null) parts.push('Reconstructed from events; shared CPUs as of now');
	$('summary').textContent = parts.join(' · ');
}

// ---- the list, and search ----

// "cpu 12" and "node 1" name what is there; all else is a part of a container's name, class or CPUs.
function wanted(places) {
	const text = $('search').value.trim().toLowerCase(), place = /^(cpu|node)\s*(\d+)$/.exec(text);
	if (!text) return () => true;
	if (!place) return (name) => name.toLowerCase().includes(text);
	const nodes = new Map(state.topology.cpus.map((c) => [c.cpu, c.node])), id = Number(place[2]);
	return (name) => ids(places.get(name)?.cpus).some((cpu) => (place[1] === 'cpu' ? cpu : nodes.get(cpu)) === id);
}

// The CPUs of the containers that the search finds, unless it finds all.
function foundCpus(places) {
	const text = $('search').value.trim(), filter = wanted(places);
	if (!text) return new Set();
	return new Set([...places].filter(([name]) => filter(name)).flatMap(([, place]) => ids(place.cpus)));
}

// The heading below which a container is listed.
function groupOf(name, place) {
	const [namespace, pod] = name.split('/');
	if (state.group === 'namespace') return `namespace ${namespace}`;
	if (state.group === 'pod') return `pod ${namespace}/${pod}`;
	const nodes = new Map(state.topology.cpus.map((c) => [c.cpu, c.node]));
	const on = [...new Set(ids(place.cpus).map((cpu) => nodes.get(cpu)))].sort((a, b) => a - b);
	return !on.length ? 'not pinned' : on.length === 1 ? `node ${on[0]}` : `nodes ${on.join(', ')}`;
}

// List items with a heading before each group.
function grouped(items) {
	const groups = new Map();
	for (const [group, item] of items) groups.set(group, [...groups.get(group) ?? [], item]);
	return [...groups].sort(([a], [b]) => a.localeCompare(b, undefined, {numeric: true}))
		.flatMap(([group, list]) => [make('li', {class: 'heading'}, `${group} · ${list.length}`), ...list]);
}

function usageTexts(usage) {
	return !usage ? [] : [usage.cpu_milli === undefined ? null : `uses ${milli(usage.cpu_milli) ?? '0'} CPU`, usage.memory ? bytes(usage.memory) : null,
		usage.pressure.length ? `lacks ${usage.pressure.join(', ')}` : null];
}

function showContainers(places) {
	const of = new Map(state.containers.map((c) => [c.full_name, c])), filter = wanted(places);
	const all = [...places].filter(([name]) => filter(name)).map(([name, place]) => {
		const c = of.get(name), own = place.exclusive;
		return [state.group && groupOf(name, place), make('li', {}, make('button', {type: 'button', 'data-name': name, 'aria-pressed': String(name === state.chosen)},
			own ? make('i', {class: 'cpu own ' + colourOf(name)}) : null, make('strong', {}, name), ' ',
			own ? make('span', {class: 'mark'}, own === place.cpus ? 'exclusive' : `exclusive ${own}`) : null,
			c?.degraded ? make('span', {class: 'mark bad'}, 'degraded') : null,
			make('div', {class: 'facts'}, [place.cpus ? `CPUs ${place.cpus}` : 'not pinned', c?.mems ? `memory ${c.mems}` : null, c?.qos, ...usageTexts(c?.usage)]
				.filter(Boolean).join(' · '))))];
	});
	const items = state.group ? grouped(all) : all.map(([, item]) => item);
	const focused = document.activeElement?.closest?.('#containers button')?.dataset.name;
	$('containers').firstElementChild.replaceChildren(
		...(items.length ? items : [make('li', {class: 'quiet'}, 'None.')]));
	if (focused) $('containers').querySelector(`[data-name="${CSS.escape(focused)}"]`)?.focus();
}

// ---- explain ----

function facts(pairs) {
	const list = make('dl');
	for (const [name, value] of pairs)
		if (value !== null && value !== undefined && value !== '') list.append(make('dt', {}, name), make('dd', {}, String(value)));
	return list;
}

function table(heads, rows) {
	return make('table', {}, make('thead', {}, make('tr', {}, ...heads.map((h) => make('th', {scope: 'col'}, h)))),
		make('tbody', {}, ...rows.map((r) => make('tr', {}, ...r.map((v) => make('td', {}, v === null ? '-' : String(v)))))));
}

function milli(mcpu) {
	return mcpu ? (mcpu % 1000 ? mcpu + 'm' : String(mcpu / 1000)) : null;
}

const VALUE_NAMES = {cpus: 'CPUs', mems: 'memory nodes', shares: 'CPU shares', quota_us: 'CPU quota', period_us: 'CPU period', memory_limit: 'memory limit'};

function valueText(name, value) {
	const n = Number(value);
	if (value === null || value === '' || !Number.isFinite(n) || n < 0) return value;
	return name.startsWith('memory_') ? bytes(n) : name.endsWith('_us') ? `${n / 1000} ms` : value;
}

function explanation(c) {
	const w = c.wanted;
	return [
		make('h2', {}, c.full_name),
		c.degraded ? make('p', {class: 'bad'}, c.degraded) : null,
		facts([['State', c.state], ['QoS', c.qos], ['Policy', c.policy], ['CPUs', c.cpus ?? 'not pinned'], ['Exclusive', c.exclusive],
			['Memory nodes', c.mems ?? 'not pinned'], ['CPU request', milli(w.cpu_request_milli)], ['CPU limit', milli(w.cpu_limit_milli)],
			['Memory request', w.memory_request ? bytes(w.memory_request) : null],
			['Memory limit', w.memory_limit ? bytes(w.memory_limit) : null],
			['RDT class', c.rdt_class], ['Block I/O class', c.blockio_class], ['CPU class', c.cpu_class], ['Created', c.created],
			['CPU used', c.usage && (milli(c.usage.cpu_milli) ?? '0')],
			['Throttled', c.usage?.throttled_permille === undefined ? null : `${c.usage.throttled_permille / 10} % of periods`],
			['Memory used', c.usage?.memory ? bytes(c.usage.memory) : null],
			['on nodes', Object.entries(c.usage?.memory_by_node ?? {}).map(([node, n]) => `${node}: ${bytes(n)}`).join(', ')],
			['Lacks', c.usage?.pressure?.join(', ')]]),
		c.remark ? make('p', {class: 'quiet'}, c.remark) : null,
		c.trail.length ? make('h3', {}, 'Why') : null,
		make('ol', {}, ...c.trail.map((line) => make('li', {}, line))),
		make('h3', {}, 'Values'),
		table(['', 'decided', 'requested', 'active'], c.values.map((v) =>
			[VALUE_NAMES[v.name] ?? v.name, ...[v.decided, v.asked, v.in_force].map((x) => valueText(v.name, x))])),
		c.controllers.length ? make('h3', {}, 'Controllers') : null,
		c.controllers.length ? table(['', 'result', ''], c.controllers.map((v) => [v.name, v.result, v.text])) : null,
		make('p', {class: 'quiet facts'}, [c.section, c.configured_at].filter(Boolean).join(', ')),
	].filter(Boolean);
}

async function explain(name) {
	const turn = ++state.explained;
	let content;
	try {
		content = explanation(await ask('explain?name=' + encodeURIComponent(name)));
	} catch (error) {
		content = [make('h2', {}, name), make('p', {class: 'bad'}, error.message)];
	}
	if (turn === state.explained) $('details').replaceChildren(...content);
}

function choose(name) {
	state.chosen = name;
	address();
	state.tried = [];
	show();
	if (!name) return;
	explain(name);
	openTab('details');
}

function chooseCpu(cpu) {
	const names = state.use.get(cpu)?.names ?? [];
	focusCpu(cpu, true);
	if (names.length === 1) {
		choose(names[0]);
		return;
	}
	$('search').value = 'cpu ' + cpu;
	state.chosen = null;
	show();
	openTab('containers');
}

// ---- moving over CPUs ----

function describe(cpu) {
	const c = state.cells.get(cpu)?.cpu, use = state.use?.get(cpu);
	if (!c) return '';
	const cache = c.cache_unit === null ? '' : `, cache ${c.cache_unit}`;
	const names = use ? use.names.slice(0, 5).join(', ') + (use.names.length > 5 ? ` and ${use.names.length - 5} more` : '') : ids(state.topology.reserved).includes(cpu) ? 'reserved' : 'free';
	const load = state.load?.has(cpu) ? `, ${state.load.get(cpu)} % used` : '';
	return `CPU ${cpu}: ${names}${use?.own ? ' (exclusive)' : ''}${load} — package ${c.package}, die ${c.die}, node ${c.node}${cache}, core ${c.core}`;
}

function labelFocus() {
	const cell = state.cells.get(state.focus);
	if (cell) cell.element.setAttribute('aria-label', describe(state.focus));
}

function focusCpu(cpu, move) {
	const before = state.cells.get(state.focus), cell = state.cells.get(cpu);
	if (!cell) return;
	if (before) before.element.tabIndex = -1;
	state.focus = cpu;
	cell.element.tabIndex = 0;
	labelFocus();
	if (!move) return;
	cell.element.focus();
	$('hint').textContent = describe(cpu);
}

// The nearest CPU in a direction, as it is drawn.
function neighbour(from, dx, dy) {
	const a = from.getBoundingClientRect();
	let best = null, least = Infinity;
	for (const {element, cpu} of state.cells.values()) {
		const b = element.getBoundingClientRect(), x = b.x - a.x, y = b.y - a.y;
		const along = x * dx + y * dy, aside = Math.abs(x * dy) + Math.abs(y * dx);
		if (along <= 1 || (dx && aside > a.height / 2)) continue;
		const far = along + 3 * aside;
		if (far < least) [best, least] = [cpu.cpu, far];
	}
	return best;
}

function onMachineKey(event) {
	const cell = event.target.closest('.cpu');
	if (!cell) return;
	const step = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]}[event.key];
	const order = [...state.cells.keys()], here = Number(cell.dataset.cpu);
	let to = null;
	if (step) to = neighbour(cell, ...step);
	else if (event.key === 'Home') to = order[0];
	else if (event.key === 'End') to = order[order.length - 1];
	else if (event.key === 'Enter' || event.key === ' ') chooseCpu(here);
	else return;
	event.preventDefault();
	if (to !== null) focusCpu(to, true);
}

// ---- links ----

// Keeps the container and the moment in the address, so that it can be passed on.
function address() {
	const parts = new URLSearchParams();
	if (state.chosen) parts.set('container', state.chosen);
	if (state.at !== null) parts.set('event', state.events[state.at].seq);
	history.replaceState(null, '', parts.size ? '#' + parts : location.pathname);
}

// Shows what the page was opened with.
function followAddress() {
	const parts = new URLSearchParams(location.hash.slice(1)), seq = Number(parts.get('event'));
	const at = seq ? state.events.findIndex((e) => e.seq === seq) : -1;
	if (at >= 0) goTo(at);
	if (parts.get('container')) choose(parts.get('container'));
}

// ---- tabs ----

function openTab(name) {
	for (const tab of TABS) {
		const on = tab === name, button = $('tab-' + tab);
		button.setAttribute('aria-selected', String(on));
		button.tabIndex = on ? 0 : -1;
		$(tab).hidden = !on;
	}
	if (name === 'events') showEvents();
}

function onTabKey(event) {
	const i = TABS.findIndex((t) => $('tab-' + t) === event.target);
	const by = {ArrowLeft: -1, ArrowRight: 1}[event.key];
	if (i < 0 || !by) return;
	const next = TABS[(i + by + TABS.length) % TABS.length];
	openTab(next);
	$('tab-' + next).focus();
}

// ---- what happened ----

function clock(time) {
	return time ? time.slice(11, 19) : '';
}

function showEvents() {
	if ($('events').hidden) return;
	const items = state.events.map((e, i) => make('li', {}, make('button', {type: 'button', 'data-at': String(i),
		'aria-current': String(i === state.at)}, make('time', {dateTime: e.time}, clock(e.time)), ' ', make('span', {class: 'mark' + (BAD_EVENTS.has(e.kind) ? ' bad' : '')}, e.kind), ' ', e.text)));
	$('events').firstElementChild.replaceChildren(...items.reverse());
}

function goTo(at) {
	const n = state.events.length;
	state.at = at === null || at >= n - 1 ? null : Math.max(0, at);
	address();
	showMoment();
	show();
	showEvents();
}

function showMoment() {
	const n = state.events.length, slider = $('slider'), e = state.at === null ? null : state.events[state.at];
	slider.max = String(Math.max(0, n - 1));
	slider.value = String(state.at === null ? n - 1 : state.at);
	slider.setAttribute('aria-valuetext', e ? `${clock(e.time)} ${e.text}` : 'now');
	$('moment').textContent = e ? `after ${clock(e.time)} ${e.kind}: ${e.text}` : n ? `now; ${n} events` : 'now';
	live(e ? 'past' : state.connected ? 'live' : 'waiting');
}

function live(what) {
	const words = {live: 'live', past: 'in the past', waiting: 'connecting'};
	if ($('live').dataset.state === what && $('live').textContent === words[what]) return;
	$('live').dataset.state = what;
	$('live').textContent = words[what];
}

function take(message) {
	const gone = message.missed || (message.last < state.last);
	const first = state.at === null ? null : state.events[state.at].seq;
	if (gone) state.events = [];
	state.events = [...state.events, ...message.events].slice(-EVENTS_MAX);
	state.last = message.last;
	if (first !== null) {
		const at = state.events.findIndex((e) => e.seq === first);
		state.at = at < 0 ? 0 : at;
	}
	if (message.events.length || gone) refresh(message.events.some((e) => e.kind === 'machine' || e.kind === 'config'));
	showMoment();
	showEvents();
	if (location.hash && !state.linked) followAddress();
	state.linked = true;
}

function follow() {
	const source = new EventSource('map/events?after=' + state.last);
	source.onopen = () => {
		state.connected = true;
		showMoment();
	};
	source.onmessage = (message) => take(JSON.parse(message.data));
	source.onerror = () => {
		state.connected = false;
		showMoment();
		if (source.readyState === EventSource.CLOSED) setTimeout(follow, AGAIN_MS); // too many follow, or nri-rpd is away
	};
}

// One at a time, and no more often than REFRESH_MS.
function refresh(machine) {
	state.machineDue = state.machineDue || machine;
	if (state.due) return;
	state.due = true;
	setTimeout(load, Math.max(0, state.refreshed + REFRESH_MS - Date.now()));
}

async function load() {
	const machine = state.machineDue || !state.topology;
	state.machineDue = false;
	try {
		if (machine) {
			const topology = await ask('topology');
			const changed = state.topology?.online !== topology.online;
			state.topology = topology;
			state.containers = await ask('containers');
			if (changed) drawMachine();
		} else {
			state.containers = await ask('containers');
		}
		show();
	} catch (error) {
		$('hint').textContent = error.message;
		state.machineDue = state.machineDue || machine;
		setTimeout(() => refresh(machine), AGAIN_MS);
	}
	state.due = false;
	state.refreshed = Date.now();
	clearTimeout(state.usageTimer);
	if (state.containers.some((c) => c.usage)) state.usageTimer = setTimeout(() => refresh(++state.rounds % MACHINE_EVERY === 0), USAGE_MS);
	document.body.dataset.ready = 'true';
}

// ---- try ----

function showOutcome(result) {
	const moves = result.moves.filter((m) => m.from_cpus !== m.to_cpus || m.from_mems !== m.to_mems);
	state.chosen = null;
	state.tried = moves.filter((m) => !m.from_cpus).flatMap((m) => ids(m.to_cpus));
	show();
	$('outcome').replaceChildren(
		make('p', {class: result.error ? 'bad' : ''}, result.error ? result.error : `It would be ${result.outcome}.`),
		table(['Container', 'CPUs', 'Memory'], moves.map((m) =>
			[m.container, m.from_cpus ? `${m.from_cpus} → ${m.to_cpus}` : m.to_cpus || 'not pinned', m.to_mems])),
		...moves.filter((m) => m.why?.length).flatMap((m) => [make('h3', {}, m.container), make('ul', {}, ...m.why.map((w) => make('li', {}, w)))]),
		...result.problems.map((p) => make('p', {class: 'bad'}, p)));
}

// Shows the map before or after the planned reload; the CPUs that containers move to are marked.
function showPlan(after) {
	state.after = after;
	state.chosen = null;
	state.tried = state.plan.moves.filter((m) => m.moved).flatMap((m) => ids(after ? m.to_cpus : m.from_cpus));
	if (after && state.at !== null) goTo(null);
	show();
	for (const button of $('outcome').querySelectorAll('[data-after]'))
		button.setAttribute('aria-pressed', String((button.dataset.after === 'true') === after));
}

function endPlan() {
	[state.plan, state.after, state.tried] = [null, false, []];
}

async function planReload() {
	endPlan();
	$('outcome').replaceChildren(make('p', {class: 'quiet'}, 'Planning …'));
	try {
		const plan = await ask('plan', {method: 'POST'}), moved = plan.moves.filter((m) => m.moved);
		state.plan = plan;
		const button = (after) => make('button', {type: 'button', 'data-after': String(after), onclick: () => showPlan(after)}, after ? 'After' : 'Before');
		$('outcome').replaceChildren(
			make('p', {}, `A reload would move ${moved.length} of ${placesNow().size} containers. `, button(false), ' ', button(true)),
			table(['Container', 'CPUs', 'Memory'], plan.moves.map((m) =>
				[m.container, m.moved ? `${m.from_cpus || 'any'} → ${m.to_cpus || 'any'}` : m.note, m.to_mems])));
		showPlan(true);
	} catch (error) {
		show();
		$('outcome').replaceChildren(make('p', {class: 'bad'}, error.message));
	}
}

async function tryPod(event) {
	event.preventDefault();
	endPlan();
	$('outcome').replaceChildren(make('p', {class: 'quiet'}, 'Trying …'));
	try {
		const body = $('manifest').value;
		const response = await fetch('map/try', {method: 'POST', headers: {'Content-Type': 'application/yaml'}, body});
		const text = await response.text();
		if (!text.startsWith('{')) throw new Error(text.trim());
		const result = JSON.parse(text);
		if (!result.moves) throw new Error(result.error);
		showOutcome(result);
	} catch (error) {
		state.tried = [];
		show();
		$('outcome').replaceChildren(make('p', {class: 'bad'}, error.message));
	}
}

// ---- hands ----

function onKey(event) {
	if (event.ctrlKey || event.altKey || event.metaKey) return;
	if (event.key === 'Escape') {
		$('search').value = '';
		endPlan();
		choose(null);
		goTo(null);
	}
	if (event.target.matches('input, textarea')) return;
	if (event.key === '/') {
		event.preventDefault();
		openTab('containers');
		$('search').focus();
	} else if (event.key === '+' || event.key === '-') {
		resize(event.key === '+' ? 1 : -1);
	}
}

function listen() {
	const machine = $('machine');
	machine.addEventListener('click', (e) => {
		const cell = e.target.closest('.cpu');
		if (cell) chooseCpu(Number(cell.dataset.cpu));
	});
	machine.addEventListener('mouseover', (e) => {
		const cell = e.target.closest('.cpu');
		if (cell) $('hint').textContent = describe(Number(cell.dataset.cpu));
	});
	machine.addEventListener('keydown', onMachineKey);
	document.addEventListener('keydown', onKey);
	document.querySelector('nav').addEventListener('keydown', onTabKey);
	for (const tab of TABS) $('tab-' + tab).addEventListener('click', () => openTab(tab));
	$('containers').addEventListener('click', (e) => {
		const name = e.target.closest('button')?.dataset.name;
		if (name) choose(name);
	});
	$('events').addEventListener('click', (e) => {
		const at = e.target.closest('button')?.dataset.at;
		if (at !== undefined) goTo(Number(at));
	});
	$('search').addEventListener('input', () => {
		openTab('containers');
		show();
	});
	$('slider').addEventListener('input', () => goTo(Number($('slider').value)));
	$('back').addEventListener('click', () => goTo((state.at ?? state.events.length - 1) - 1));
	$('forth').addEventListener('click', () => goTo(state.at === null ? null : state.at + 1));
	$('now').addEventListener('click', () => goTo(null));
	$('group').addEventListener('change', () => {
		state.group = $('group').value;
		show();
	});
	$('smaller').addEventListener('click', () => resize(-1));
	$('larger').addEventListener('click', () => resize(1));
	document.querySelector('#try form').addEventListener('submit', tryPod);
	$('plan').addEventListener('click', planReload);
}

listen();
load().then(follow);
