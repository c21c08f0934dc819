# SPDX-License-Identifier: Apache-2.0
# bash completion for nri-rpd(8)
# shellcheck shell=bash

_nri_rpd() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	COMPREPLY=()
	case $prev in
	--config | --nri-socket | --control-socket) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
	--host-root | --state-dir | --module-dir) mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
	--log-level) mapfile -t COMPREPLY < <(compgen -W "error warning notice info debug" -- "$cur") ;;
	*) mapfile -t COMPREPLY < <(compgen -W "--config --host-root --state-dir --nri-socket --control-socket --module-dir --check-config --reset-cache --log-level --version --help" -- "$cur") ;;
	esac
}

complete -o filenames -F _nri_rpd nri-rpd
