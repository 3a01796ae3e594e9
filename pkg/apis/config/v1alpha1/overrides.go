package v1alpha1

import "slices"

// ApplyOverrides applies the environment and the command line to the configuration. sourceKubeconfig is the value of
// KUBECONFIG and targetKubeconfig that of TARGET_KUBECONFIG; empty values change nothing. extraTargetNamespaces are the
// values of --extra-target-namespace, which are added to the target's namespaces.
func (c *ResourceManagerConfiguration) ApplyOverrides(sourceKubeconfig, targetKubeconfig string, extraTargetNamespaces []string) {
	if c.TargetClientConnection == nil {
		c.TargetClientConnection = &ClientConnection{}
	}
	if sourceKubeconfig != "" {
		c.SourceClientConnection.Kubeconfig = sourceKubeconfig
	}
	if targetKubeconfig != "" {
		c.TargetClientConnection.Kubeconfig = targetKubeconfig
	}
	c.TargetClientConnection.addNamespaces(extraTargetNamespaces)
}

// addNamespaces adds namespaces to the list. It does not change an empty list, which means all namespaces.
func (c *ClientConnection) addNamespaces(extra []string) {
	if len(c.Namespaces) == 0 {
		return
	}
	for _, namespace := range extra {
		if !slices.Contains(c.Namespaces, namespace) {
			c.Namespaces = append(c.Namespaces, namespace)
		}
	}
}
