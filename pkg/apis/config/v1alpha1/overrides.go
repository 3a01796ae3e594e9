package v1alpha1

import "slices"

// ApplyOverrides applies what the environment and the command line say on top of the file. sourceKubeconfig is the
// value of KUBECONFIG and targetKubeconfig that of TARGET_KUBECONFIG; empty ones change nothing.
// extraTargetNamespaces are the values of --extra-target-namespace; they are added to the target's namespaces.
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

// addNamespaces leaves an empty list alone: it means all namespaces, and adding one to it would take away the rest.
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
