module github.com/trellis-k8s/trellis/hack/crds/modules

go 1.26.0

require (
	istio.io/api v1.29.2
	sigs.k8s.io/gateway-api v1.6.1
)
