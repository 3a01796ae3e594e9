// Package component contains no code. Each package below it is one component of a seed, a control plane or a garden. A
// component is pure: Objects(Values) returns the objects of the component for the given facts about the cluster, and
// Secrets(Values, authority) the certificates that it needs. Flows put them into bundles. See docs/components.md.
package component
