# SPDX-License-Identifier: Apache-2.0
# bash completion for nri-rp-agent(8)
# shellcheck shell=bash

_nri_rp_agent() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	COMPREPLY=()
	case $prev in
	--daemon-socket | --kubelet-socket | --kubelet-pods-socket | --bridge-socket | --kubeconfig | --service-account | --plugin-dir | --pod-resources-socket | --kubelet-root | --cdi-dir) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
	--devices-provider) mapfile -t COMPREPLY < <(compgen -W "kubelet none" -- "$cur") ;;
	--log-level) mapfile -t COMPREPLY < <(compgen -W "error warning notice info debug" -- "$cur") ;;
	*) mapfile -t COMPREPLY < <(compgen -W "--daemon-socket --kubelet-socket --kubelet-pods-socket --bridge-socket --kubeconfig --context --service-account --node --namespace \
		--config-map --plugin-dir --plugin-grace --pod-resources-socket --devices-provider --kubelet-root --cdi-dir --log-level --version --help" -- "$cur") ;;
	esac
}

complete -o filenames -F _nri_rp_agent nri-rp-agent
