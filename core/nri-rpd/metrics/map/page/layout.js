// SPDX-License-Identifier: Apache-2.0
// The machine as a tree of groups, from the document of `nri-rpctl topology --json`.

// "0-3,8" → [0, 1, 2, 3, 8]
export function ids(text) {
	const list = [];
	for (const part of text ? text.split(',') : []) {
		const [first, last] = part.split('-').map(Number);
		for (let i = first; i <= (last ?? first); i++) list.push(i);
	}
	return list;
}

const LEVELS = [
	{name: 'package', key: (c) => c.package},
	{name: 'die', key: (c) => c.die},
	{name: 'node', key: (c) => c.node},
	{name: 'cache', key: (c) => c.cache_unit},
	{name: 'core', key: (c) => c.core_unit ?? 'cpu' + c.cpu},
];

function divide(cpus, key) {
	const parts = new Map();
	for (const cpu of cpus) {
		const k = key(cpu);
		if (!parts.has(k)) parts.set(k, []);
		parts.get(k).push(cpu);
	}
	return parts;
}

// A level that divides nothing in this machine is left out; packages, nodes and cores stay.
function groups(cpus, level, divides) {
	if (level === LEVELS.length) return cpus.map((cpu) => ({cpu}));
	const {name, key} = LEVELS[level];
	if (!divides.has(name)) return groups(cpus, level + 1, divides);
	return [...divide(cpus, key)].map(([id, part]) => ({
		level: name, id, n: part.length, children: groups(part, level + 1, divides),
	}));
}

const CORES_MAX = 1024; // CPUs of a machine whose cores are drawn as groups

function dividing(cpus) {
	const found = new Set(['package', 'node', 'core']);
	const within = (outer, inner) => [...divide(cpus, outer).values()].some((part) => divide(part, inner).size > 1);
	if (within(LEVELS[0].key, LEVELS[1].key)) found.add('die');
	if (within((c) => c.package + '/' + c.die + '/' + c.node, LEVELS[3].key)) found.add('cache');
	if (cpus.length > CORES_MAX) found.delete('core');
	return found;
}

export function tree(topology) {
	return groups(topology.cpus, 0, dividing(topology.cpus));
}

// Memory without CPUs of its own, by package.
export function memoryOnly(topology) {
	return topology.nodes.filter((n) => !n.cpus);
}

// Columns of a grid that is about so many times as wide as high, with full rows where one more or less gives them.
export function columns(n, stretch) {
	const near = Math.max(1, Math.min(n, Math.ceil(Math.sqrt(n * stretch))));
	return [near, near + 1, near - 1].find((c) => c > 0 && n % c === 0) ?? near;
}

export function bytes(n) {
	const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
	let i = 0;
	for (; n >= 1024 && i < units.length - 1; i++) n /= 1024;
	return (n >= 100 || n % 1 < 0.05 ? n.toFixed(0) : n.toFixed(1)) + ' ' + units[i];
}
