#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test/bench/relief.sh BUILD
set -eu
build=$(realpath "$1")
dir=$(mktemp -d /tmp/nri-rp-bench.XXXXXX)
trap 'rm -rf "$dir"' EXIT INT TERM

# PACKAGES CPUS SHARED: packages of two NUMA nodes with so many CPUs each
measure() {
	echo "{packages: $1, dies: 1, nodes: 2, cores: $2, threads: 1, memory: 32Gi}" >"$dir/machine.yaml"
	rm -rf "$dir/root"
	"$build/bin/nri-rp-sim" machine "$dir/machine.yaml" "$dir/root" >/dev/null
	for policy in static static-plus topology-aware; do
		printf 'policy: %s\nmetrics: {listen: ""}\nlog: {level: warning}\n%s: {reservedResources: {cpu: "cpuset:0-3"}, relief: %s}\n' \
			"$policy" "$policy" '{at: admission, exclusive: all, cooldown: 1ms}' >"$dir/$policy.conf"
		printf '%-16s ' "$policy"
		"$build/bench/relief" "$dir/root" "$dir/$policy.conf" $(($1 * 2)) "$2" "$3" \
			"$build/bin/nri-rpd --config {config} --host-root {root} --nri-socket {socket} --state-dir {dir}/state --control-socket {dir}/ctl.sock --module-dir $build/modules"
	done
}

measure 2 32 876
measure 4 128 0
