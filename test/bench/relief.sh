#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test/bench/relief.sh BUILD
set -eu
build=$(realpath "$1")
dir=$(mktemp -d /tmp/nri-rp-bench.XXXXXX)
trap 'rm -rf "$dir"' EXIT INT TERM
echo '{packages: 4, dies: 1, nodes: 2, cores: 128, threads: 1, memory: 16Gi}' >"$dir/machine.yaml"
"$build/bin/nri-rp-sim" machine "$dir/machine.yaml" "$dir/root" >/dev/null
for policy in static static-plus topology-aware; do
	printf 'policy: %s\nmetrics: {listen: ""}\nlog: {level: warning}\n%s: {reservedResources: {cpu: "cpuset:0"}, relief: %s}\n' \
		"$policy" "$policy" '{at: admission, exclusive: all, cooldown: 1ms}' >"$dir/$policy.conf"
	printf '%-16s ' "$policy"
	"$build/bench/relief" "$dir/root" "$dir/$policy.conf" 8 128 \
		"$build/bin/nri-rpd --config {config} --host-root {root} --nri-socket {socket} --state-dir {dir}/state --control-socket {dir}/ctl.sock --module-dir $build/modules"
done
