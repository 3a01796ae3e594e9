// Package shoot tests the flow of Shoots with a garden and a seed cluster, both with real API servers. Pods in the seed
// are simulated. In addition, the programs of the control plane run as processes, with the arguments, files and
// credentials of their Pods.
package shoot
