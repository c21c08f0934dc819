# SPDX-License-Identifier: Apache-2.0
# For shells other than bash: complete.bash FILE WORD…, where FILE is bash's completion of the program that is the first WORD, and the
# last WORD is what is being typed. Prints what may stand there, one a line, with a tab and its description where the program's help has one.
# shellcheck shell=bash source=/dev/null
source "$1"
shift
name=${1##*/}
COMP_WORDS=("$@")
export COMP_CWORD=$(($# - 1))
"_${name//-/_}"
((${#COMPREPLY[@]} == 0)) || printf '%s\n' "${COMPREPLY[@]}" | awk -v first="$((COMP_CWORD == 1))" '
	FNR == NR {
		if (match($0, /^  (--)?[a-z][a-z-]*/)) {
			name = substr($0, 3, RLENGTH - 2)
			sub(/^  [^ ].*[^ ]  +/, "")
			if ((name ~ /^--/ || first) && !(name in told))
				told[name] = $0
		}
		next
	}
	{ print ($0 in told) ? $0 "\t" told[$0] : $0 }' <("${COMP_WORDS[0]}" --help 2>/dev/null) -
