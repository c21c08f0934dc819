/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the page, byte by byte (core/nri-rpd/metrics/map/map.c). */
.macro file name, path
	.global map_page_\name, map_page_\name\()_end
map_page_\name:
	.incbin "core/nri-rpd/metrics/map/page/\path"
map_page_\name\()_end:
.endm
	.section .rodata
	file html, map.html
	file css, map.css
	file js, map.js
	file layout, layout.js
	file history, history.js
	.section .note.GNU-stack, "", %progbits
