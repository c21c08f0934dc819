# SPDX-License-Identifier: Apache-2.0
"""What CRI's calls answer through the bridge is what they answer without it; with a plugin behind it but for two annotations."""
import grpc

from cri_conformance import Script, differences
from criproxy import Bridge, Judge
from test_bridge import runtime  # noqa: F401, a fixture

CALLS_MIN = 80
OURS = 'bridge.nri-rp.io/'  # by which a plugin knows pods and containers


def test_conformance(runtime):  # noqa: F811
    channel = grpc.insecure_channel('unix:%s' % runtime.socket, options=[('grpc.use_local_subchannel_pool', 1)])
    direct = Script(runtime, channel).run()
    assert len(direct) >= CALLS_MIN
    with Bridge(runtime) as b:
        assert differences(direct, Script(runtime, b.channel).run()) == []
        with Judge(b.nri_socket, '-c') as judge:
            assert differences(direct, Script(runtime, b.channel, OURS).run()) == []
            judge.wait('RemovePodSandbox', 2)
            judge.verdict()
