# SPDX-License-Identifier: Apache-2.0
# bash completion for nri-rp-bridge(8)
# shellcheck shell=bash

_nri_rp_bridge() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	COMPREPLY=()
	case $prev in
	--listen | --runtime | --image | --nri-socket) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
	--pod-event) mapfile -t COMPREPLY < <(compgen -W "before after" -- "$cur") ;;
	--log-level) mapfile -t COMPREPLY < <(compgen -W "error warning notice info debug" -- "$cur") ;;
	*) mapfile -t COMPREPLY < <(compgen -W "--listen --runtime --image --nri-socket --strict --require-plugin --pod-event --trace --log-level --version --help" -- "$cur") ;;
	esac
}

complete -o filenames -F _nri_rp_bridge nri-rp-bridge
