# SPDX-License-Identifier: Apache-2.0
# bash completion for nri-rp-bridge(8)
# shellcheck shell=bash

_nri_rp_bridge() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	COMPREPLY=()
	case $prev in
	--listen | --runtime | --image | --nri-socket | --agent-socket | --kubelet-token | --kubelet-ca | --runtime-state | --host-root) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
	--source) mapfile -t COMPREPLY < <(compgen -W "cri cgroups" -- "$cur") ;;
	--pods) mapfile -t COMPREPLY < <(compgen -W "auto readonly secure agent cgroupfs" -- "$cur") ;;
	--pod-event) mapfile -t COMPREPLY < <(compgen -W "before after" -- "$cur") ;;
	--log-level) mapfile -t COMPREPLY < <(compgen -W "error warning notice info debug" -- "$cur") ;;
	*) mapfile -t COMPREPLY < <(compgen -W "--source --nri-socket --listen --runtime --image --strict --require-plugin --pod-event --trace --pods --kubelet \
		--read-only-port --secure-port --kubelet-token --kubelet-ca --agent-socket --poll --reconcile --cgroup-root --runtime-state --memory-migrate \
		--host-root --log-level --version --help" -- "$cur") ;;
	esac
}

complete -o filenames -F _nri_rp_bridge nri-rp-bridge
