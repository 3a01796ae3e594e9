package gardenlet

import (
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit"
)

// survivesGarden checks that a running gardenlet survives an outage of the API server of the garden: the process stays, its Lease is
// renewed, since that belongs to Kubernetes, it continues to work in the seed, and it follows its Seed again after the outage.
func (f *fixture) survivesGarden() {
	pid, before := f.process.PID(), f.lease()
	kit.Must(f, f.gardenPlane.KillAPIServer())
	f.namespace(f.seed, "extension-during", map[string]string{"gardener.cloud/role": "extension"})
	kit.EventuallyTrue(f, "the policies are emitted during the outage", func() bool {
		key := client.ObjectKey{Namespace: "garden", Name: "network-policies-extension-during"}
		return f.seed.Get(f.Context(), key, &resourcesv1alpha1.ManagedResource{}) == nil
	})
	kit.EventuallyTrue(f, "the lease is renewed during the outage", func() bool { return f.lease().Spec.RenewTime.After(before.Spec.RenewTime.Time) })
	kit.EventuallyTrue(f, "gardenlet is healthy during the outage", func() bool { return f.status("/healthz") == http.StatusOK })
	kit.Must(f, f.gardenPlane.StartAPIServer(f.Context()))
	f.awaitReady()
	f.operation("renew-garden-access-secrets") // needs the watch of the Seed
	if err := f.process.Err(); err != nil || f.process.PID() != pid {
		f.Errorf("gardenlet was restarted: %v", err)
	}
}
