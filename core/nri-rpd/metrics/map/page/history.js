// SPDX-License-Identifier: Apache-2.0
// What was where at an earlier event: what is there now, with each event since then taken back.

const CREATED = /: CPUs ([\d,-]+)( \(exclusive ?([\d,-]*)\))?,/;
const MOVED = /CPUs ([\d,-]+) → ([\d,-]+)/;

// The CPUs that an event left its container with, as its text says; null: it does not say.
function after(event) {
	const created = CREATED.exec(event.text);
	if (event.kind === 'created' && created)
		return {cpus: created[1], exclusive: created[2] ? created[3] || created[1] : null};
	const moved = MOVED.exec(event.text);
	return event.kind === 'moved' && moved ? {cpus: moved[2], exclusive: null} : null;
}

function before(events, i) {
	for (let k = i - 1; k >= 0; k--)
		if (events[k].container === events[i].container && after(events[k])) return after(events[k]);
	return null;
}

function takeBack(places, events, i, unknown) {
	const event = events[i], name = event.container, place = places.get(name);
	if (!name) return;
	if (event.kind === 'created') {
		places.delete(name);
		unknown.delete(name);
	} else if (event.kind === 'released') {
		const was = before(events, i);
		if (was) places.set(name, was);
		else unknown.add(name);
	} else if (event.kind === 'moved' && place) {
		const moved = MOVED.exec(event.text);
		if (moved) places.set(name, {cpus: moved[1], exclusive: before(events, i)?.exclusive ?? null});
		else if (event.text.includes('CPUs')) unknown.add(name);
	}
}

// {places: name → {cpus, exclusive}, unknown: names} as they were after events[at]; at === events.length - 1 is now.
export function placesAt(now, events, at) {
	const places = new Map(now), unknown = new Set();
	for (let i = events.length - 1; i > at; i--) takeBack(places, events, i, unknown);
	return {places, unknown};
}
