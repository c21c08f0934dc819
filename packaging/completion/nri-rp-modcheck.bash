# SPDX-License-Identifier: Apache-2.0
# bash completion for nri-rp-modcheck(1)
# shellcheck shell=bash

_nri_rp_modcheck() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	COMPREPLY=()
	case $prev in
	--seed | --cases | --reproduce | --slow) ;;
	--machines) mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
	*)
		if [[ $cur == -* ]]; then
			mapfile -t COMPREPLY < <(compgen -W "--machines --seed --cases --reproduce --config --vectors --annotations --slow --sanitize --valgrind --strict-time \
				--json --list --version --help" -- "$cur")
		else
			mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		fi
		;;
	esac
}

complete -o filenames -F _nri_rp_modcheck nri-rp-modcheck
