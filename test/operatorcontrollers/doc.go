// Package operatorcontrollers tests the operator's webhooks and controllers beside the flow of the Garden with real API servers. One
// garden serves both as the runtime cluster and as the virtual garden.
package operatorcontrollers
