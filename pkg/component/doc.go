// Package component has no code. Each package below it is a component of a seed, of a control plane or of a garden. It is pure: Objects(Values)
// returns the objects of the component for what its author has to know of the cluster, and Secrets(Values, authority) the certificates that
// it needs. Flows put them into bundles. See docs/components.md.
package component
