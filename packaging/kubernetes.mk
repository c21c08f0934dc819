# SPDX-License-Identifier: Apache-2.0
# make kubernetes: what a cluster is given, below $(O)/kubernetes: packaging/kubernetes with the version, the definitions of custom
# resources as the modules' tables have them, and a Helm chart whose templates are made of the manifests.

KUBERNETES := $(O)/kubernetes

kubernetes: $(O)/bin/nri-rpctl modules ## manifests for a cluster, to be applied with kubectl apply -k build/kubernetes/base
	$(Q)rm -rf $(KUBERNETES) && mkdir -p $(O) && cp -r packaging/kubernetes $(KUBERNETES)
	$(Q)sed -i 's|@version@|$(VERSION)|' $(KUBERNETES)/*/kustomization.yaml $(KUBERNETES)/chart/*.yaml
	$(Q)mkdir $(KUBERNETES)/modules && cp $$(ls $(O)/modules/*.so | grep -v /template-calculator) $(KUBERNETES)/modules
	$(Q)$(O)/bin/nri-rpctl --module-dir $(KUBERNETES)/modules config crds > $(KUBERNETES)/base/crds.json
	$(Q)rm -r $(KUBERNETES)/modules $(KUBERNETES)/chart.sed $(KUBERNETES)/enable-nri/enable-nri
	$(Q)mkdir $(KUBERNETES)/chart/crds $(KUBERNETES)/chart/templates
	$(Q)mv $(KUBERNETES)/chart/NOTES.txt $(KUBERNETES)/chart/templates
	$(Q)cp $(KUBERNETES)/base/crds.json $(KUBERNETES)/base/adjustments.yaml $(KUBERNETES)/chart/crds
	$(Q)for f in rbac configuration networkpolicy daemonset; do \
		sed -f packaging/kubernetes/chart.sed $(KUBERNETES)/base/$$f.yaml > $(KUBERNETES)/chart/templates/$$f.yaml || exit 1; done
	$(Q)sed -f packaging/kubernetes/chart.sed $(KUBERNETES)/resource-slices/rbac.yaml > $(KUBERNETES)/chart/templates/resource-slices.yaml
	$(Q)sed -f packaging/kubernetes/chart.sed $(KUBERNETES)/dra/driver.yaml > $(KUBERNETES)/chart/templates/dra.yaml

.PHONY: kubernetes
