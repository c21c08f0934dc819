# SPDX-License-Identifier: Apache-2.0
# Makes templates of a Helm chart of the manifests in base/: what differs between sites becomes a value.
s|namespace: nri-rp\b|namespace: {{ .Release.Namespace \| toJson }}|
s|image: nri-rp$|image: {{ printf "%s:%s" .Values.image.name .Values.image.tag \| toJson }}\n          imagePullPolicy: {{ .Values.image.pullPolicy \| toJson }}|
s|from: \[.*|from: {{ .Values.metricsFrom \| toJson }}|
s|priorityClassName: .*|priorityClassName: {{ .Values.priorityClassName \| toJson }}|
s|nodeSelector: .*|nodeSelector: {{ default dict .Values.nodeSelector \| toJson }}|
s|tolerations: .*|tolerations: {{ .Values.tolerations \| toJson }}|
/^      containers:$/i\
      {{- if .Values.nri.runtime.patchConfig }}\
      hostPID: true\
      initContainers:\
        - name: enable-nri\
          image: {{ printf "%s:%s" .Values.image.name .Values.image.tag | toJson }}\
          imagePullPolicy: {{ .Values.image.pullPolicy | toJson }}\
          command: [/usr/share/nri-rp/enable-nri, --root, /host, --restart]\
          {{- if .Values.nri.runtime.requirePlugin }}\
          args: [--require-plugin]\
          {{- end }}\
          securityContext: {privileged: true}\
          resources: {requests: {cpu: 10m, memory: 16Mi}}\
          volumeMounts:\
            - {name: etc, mountPath: /host/etc}\
      {{- end }}
/^            - {name: pods-api, /a\
            {{- if ((.Values.config).dra).enabled }}\
            - {name: plugins, mountPath: /var/lib/kubelet/plugins}\
            - {name: plugins-registry, mountPath: /var/lib/kubelet/plugins_registry}\
            - {name: cdi, mountPath: /var/run/cdi}\
            {{- end }}
/^      volumes:$/a\
        {{- if ((.Values.config).dra).enabled }}\
        - {name: plugins, hostPath: {path: /var/lib/kubelet/plugins, type: DirectoryOrCreate}}\
        - {name: plugins-registry, hostPath: {path: /var/lib/kubelet/plugins_registry, type: DirectoryOrCreate}}\
        - {name: cdi, hostPath: {path: /var/run/cdi, type: DirectoryOrCreate}}\
        {{- end }}\
        {{- if .Values.nri.runtime.patchConfig }}\
        - {name: etc, hostPath: {path: /etc}}\
        {{- end }}
/^ *resources:$/{
	N
	s|\n *requests: {cpu: 50m.*| {{ pick .Values.resources "requests" "limits" \| toJson }}|
	s|\n *requests: {cpu: 10m.*| {{ pick .Values.agentResources "requests" "limits" \| toJson }}|
}
/^  rp.conf: |/,$c\  rp.conf: {{ .Values.config | toJson | toJson }}
/^# Places of devices that claims allocate/i\
{{- if ((.Values.config).agent).resourceSlices }}
/^# Without agent.resourceSlices/a\
{{- end }}
/^# Driver of claims (dra.enabled)/i\
{{- if ((.Values.config).dra).enabled }}
/^# Without dra.enabled/a\
{{- end }}
