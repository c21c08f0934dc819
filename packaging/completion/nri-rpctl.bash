# SPDX-License-Identifier: Apache-2.0
# bash completion for nri-rpctl(1)
# shellcheck shell=bash

# Names from the running daemon, one a line; nothing when there is none. $1: command, $2: member of each object, $3…: further arguments.
_nri_rpctl_names() {
	local command=$1 member=$2
	shift 2
	"${COMP_WORDS[0]}" "$@" --json "$command" 2>/dev/null |
		grep -o "\"$member\":\"[^\"]*\"" | sed 's/^"[^"]*":"//; s/"$//' | sort -u
}

_nri_rpctl() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local globals="--socket --json --config --module-dir --host-root --version --help"
	local i word first='' second='' choices='' files=''
	local -a socket=()
	COMPREPLY=()

	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		case $word in
		--socket)
			socket=(--socket "${COMP_WORDS[i + 1]-}")
			((i++))
			;;
		--config | --module-dir | --host-root | --since | --confirm) ((i++)) ;;
		-*) ;;
		*)
			if [[ -z $first ]]; then
				first=$word
			elif [[ -z $second ]]; then
				second=$word
			fi
			;;
		esac
	done

	case $prev in
	--socket | --config)
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		return
		;;
	--module-dir | --host-root)
		mapfile -t COMPREPLY < <(compgen -d -- "$cur")
		return
		;;
	--since | --confirm) return ;;
	esac

	case "$first${second:+ $second}" in
	'') choices="status claims pods containers topology zones node explain events reload confirm undo plan try rebalance import config modules log doctor support cluster version help" ;;
	status) choices="--memory" ;;
	pods) choices=$(_nri_rpctl_names pods name "${socket[@]}") ;;
	containers) choices="--wide $(_nri_rpctl_names containers full_name "${socket[@]}")" ;;
	topology) choices="--table" ;;
	explain)
		choices="$(_nri_rpctl_names containers full_name "${socket[@]}") $(_nri_rpctl_names pods name "${socket[@]}")"
		[[ $cur == -* ]] && choices="--history"
		;;
	reload) choices="--confirm" ;;
	undo) choices="--dry-run --yes" ;;
	events) choices="--follow --since" ;;
	plan | try | import | support) files=-f ;;
	config) choices="check show schema crds" ;;
	'config check')
		files=-f
		choices="--local"
		;;
	'config show') choices="--origin --defaults --local" ;;
	'config schema') choices="core $(_nri_rpctl_names modules name "${socket[@]}")" ;;
	modules) choices="clear" ;;
	'modules clear') choices=$(_nri_rpctl_names modules name "${socket[@]}") ;;
	log) choices="level debug" ;;
	'log level') choices="error warning notice info debug" ;;
	'log debug') choices="off *" ;;
	help) choices="status claims pods containers topology zones node explain events reload confirm undo plan try rebalance import config modules log doctor support cluster version" ;;
	esac
	[[ $cur == -* ]] && choices="$choices $globals"
	mapfile -t COMPREPLY < <(compgen ${files:+"$files"} -W "$choices" -- "$cur")
}

complete -o filenames -F _nri_rpctl nri-rpctl
