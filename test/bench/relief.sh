#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test/bench/relief.sh BUILD
set -eu
build=$(realpath "$1")
dir=$(mktemp -d /tmp/nri-rp-bench.XXXXXX)
trap 'rm -rf "$dir"' EXIT INT TERM

# PACKAGES CPUS SHARED POLICY…: packages of two NUMA nodes with so many CPUs each
measure() {
	packages=$1 cpus=$2 shared=$3
	shift 3
	echo "{packages: $packages, dies: 1, nodes: 2, cores: $cpus, threads: 1, memory: 32Gi}" >"$dir/machine.yaml"
	rm -rf "$dir/root"
	"$build/bin/nri-rp-sim" machine "$dir/machine.yaml" "$dir/root" >/dev/null
	for policy; do
		printf 'policy: %s\nmetrics: {listen: ""}\nlog: {level: warning}\n%s: {reservedResources: {cpu: "cpuset:0-3"}, relief: %s}\n' \
			"$policy" "$policy" '{at: admission, exclusive: all, cooldown: 1ms}' >"$dir/$policy.conf"
		printf '%-16s ' "$policy"
		"$build/bench/relief" "$dir/root" "$dir/$policy.conf" $((packages * 2)) "$cpus" "$shared" \
			"$build/bin/nri-rpd --config {config} --host-root {root} --nri-socket {socket} --state-dir {dir}/state --control-socket {dir}/ctl.sock --module-dir $build/modules"
	done
}

# under topology-aware shared containers have CPUs of their own, of which none would be left here
measure 2 32 876 static static-plus
measure 4 128 0 static static-plus topology-aware
