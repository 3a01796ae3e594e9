package controlplane

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/trellis-k8s/trellis/pkg/extension/webhook"
)

// Options of the webhooks of an [Ensurer].
type Options struct {
	// Provider is the type of the infrastructure, such as "local".
	Provider string
	// Reader reads Clusters. It may be a cache.
	Reader client.Reader
	// Scheme has the kinds that are changed: those of Kubernetes, of extensions, and Etcd.
	Scheme *runtime.Scheme
}

// Shoots returns the webhook "controlplane", for Shoots of this infrastructure: all objects with the label
// provider.extensions.gardener.cloud/mutated-by-controlplane-webhook=true in namespaces with shoot.gardener.cloud/provider=<provider>.
func Shoots(ensurer Ensurer, options Options) webhook.Webhook { panic("not implemented yet") }

// Exposure returns the webhook "controlplaneexposure", for Shoots in seeds of this infrastructure: of the objects with that label it is called
// for the Service, the Deployment kube-apiserver, Etcds and StatefulSets of etcd, in namespaces with seed.gardener.cloud/provider=<provider>.
func Exposure(ensurer Ensurer, options Options) webhook.Webhook { panic("not implemented yet") }
