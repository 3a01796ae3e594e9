module github.com/trellis-k8s/trellis/hack/crds/modules

go 1.26.0

// The modules from which hack/crds copies definitions. No Go file imports them, so "go mod tidy" would remove them.

require (
	istio.io/api v1.29.2
	sigs.k8s.io/gateway-api v1.6.1
)
