# SPDX-License-Identifier: Apache-2.0
# bash completion for nri-rp-sim(1)
# shellcheck shell=bash

_nri_rp_sim() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local choices="--machine --daemon --module-dir --nri --runtime --cgroups --sync-parts --seed --settle --work --keep --map --json --verbose --version --help"
	COMPREPLY=()
	case $prev in
	--module-dir | --work) mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
	--runtime) mapfile -t COMPREPLY < <(compgen -W "containerd cri-o" -- "$cur") ;;
	--cgroups) mapfile -t COMPREPLY < <(compgen -W "systemd cgroupfs" -- "$cur") ;;
	--machine | machine) mapfile -t COMPREPLY < <(compgen -f -W "$("${COMP_WORDS[0]}" machines 2>/dev/null | awk '{print $1}')" -- "$cur") ;;
	--daemon | --map | --nri | --sync-parts | --seed | --settle) ;;
	nri-rp-sim | */nri-rp-sim) mapfile -t COMPREPLY < <(compgen -W "play serve machine machines --version --help" -- "$cur") ;;
	*)
		[[ $cur == -* ]] || choices=
		mapfile -t COMPREPLY < <(compgen -f -W "$choices" -- "$cur")
		;;
	esac
}

complete -o filenames -F _nri_rp_sim nri-rp-sim
