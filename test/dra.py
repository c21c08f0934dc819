# SPDX-License-Identifier: Apache-2.0
"""The kubelet, as a driver of Dynamic Resource Allocation sees it: it finds the driver by its registration socket, and has it prepare claims."""
import pathlib

import grpc

from kubelet import messages

API = messages('proto', 'dra')
DRIVER = 'nri-rp.nri.io'
SERVICES = {'v1': 'k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin', 'v1beta1': 'k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin'}
TIMEOUT_S = 30


class Kubelet:
    """Its folder, and calls of the driver that registers there."""

    def __init__(self, root, version='v1'):
        self.root, self.service = pathlib.Path(root), SERVICES[version]
        self.registry = self.root / 'plugins_registry'
        self.registry.mkdir(parents=True, exist_ok=True)
        self.info = None

    @property
    def socket(self):
        return self.registry / (DRIVER + '-reg.sock')

    @staticmethod
    def call(socket, method, request, answer):
        with grpc.insecure_channel('unix:' + str(socket)) as channel:
            return channel.unary_unary(method, request_serializer=lambda m: m.SerializeToString(), response_deserializer=answer.FromString)(
                request, timeout=TIMEOUT_S)

    def register(self, error=None):
        """What the driver says of itself; it is told whether it was taken."""
        self.info = self.call(self.socket, '/pluginregistration.Registration/GetInfo', API.InfoRequest(), API.PluginInfo)
        self.call(self.socket, '/pluginregistration.Registration/NotifyRegistrationStatus',
                  API.RegistrationStatus(plugin_registered=not error, error=error or ''), API.RegistrationStatusResponse)
        return self.info

    def _claims(self, method, claims, answer):
        request = API.ClaimsRequest(claims=[API.Claim(namespace=ns, name=name, uid=uid) for ns, name, uid in claims])
        reply = self.call(self.info.endpoint, '/%s/%s' % (self.service, method), request, answer)
        assert len(reply.claims) == len(claims)
        return {entry.key: entry.value for entry in reply.claims}

    def prepare(self, *claims):
        """claims: (namespace, name, UID). What became of each, by UID."""
        return self._claims('NodePrepareResources', claims, API.PrepareResponse)

    def unprepare(self, *claims):
        return self._claims('NodeUnprepareResources', claims, API.UnprepareResponse)


def allocated(node, device='cpu-node-0', cpu='4', memory='1Gi', pods=(), request='cpus', config=(), more=(), **result):
    """A ResourceClaim that the scheduler has allocated; pods: their UIDs; more: further results."""
    consumed = {'cpu': cpu, 'memory': memory} if cpu else None
    results = [{'request': request, 'driver': DRIVER, 'pool': node, 'device': device, 'consumedCapacity': consumed, **result}]
    results += [{'driver': DRIVER, 'pool': node, **entry} for entry in more]
    return {'spec': {}, 'status': {'allocation': {'devices': {'results': results, 'config': list(config)}},
                                   'reservedFor': [{'resource': 'pods', 'name': uid, 'uid': uid} for uid in pods]}}
