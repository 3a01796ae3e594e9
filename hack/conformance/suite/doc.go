// Package suite selects Kubernetes' conformance tests, runs them in shards, keeps their results, and reports them.
package suite
