package gardenlet

import (
	"net/http"
	"slices"
	"strings"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/kit/audit"
)

// failsOver checks that a second replica writes nothing while the first one leads. When the first one is killed, the second
// one takes over, and writes only later changes.
func (f *fixture) failsOver() {
	first := f.process
	credential := f.authenticate()
	f.configure()
	f.start()
	kit.EventuallyTrue(f, "the second replica is ready to take over", func() bool { return f.status("/readyz") == http.StatusOK })
	f.renewsLease()
	byStandby := f.writesWith(credential)
	if len(byStandby) > 0 {
		f.Errorf("the second replica wrote %q while the first one was the leader", byStandby)
	}
	_, gardenLines := audit.Requests(f.T, f.gardenAudit, gardenUser, 0)
	kit.Must(f, first.Stop(0))
	killed := time.Now()
	f.renewsLease()
	f.Logf("the second replica renewed the lease %s after the first one was killed", time.Since(killed).Round(time.Second))

	f.namespace(f.seed, "extension-b", map[string]string{"gardener.cloud/role": "extension"})
	kit.EventuallyTrue(f, "the policies are emitted", func() bool {
		return f.seed.Get(f.Context(), client.ObjectKey{Namespace: "garden", Name: "network-policies-extension-b"}, &resourcesv1alpha1.ManagedResource{}) == nil
	})
	f.renewsLease()
	const secret, resource = "create secrets network-policies-extension-b-", "patch managedresources.resources.gardener.cloud network-policies-extension-b"
	if got := f.writesWith(credential); len(got) != 2 || !strings.HasPrefix(got[0], secret) || got[1] != resource {
		f.Errorf("the second replica wrote %q to the seed, want %q", got, []string{secret + "…", resource})
	}
	inGarden, _ := audit.Requests(f.T, f.gardenAudit, gardenUser, gardenLines)
	// The Seed reports the progress of the emitted objects, which this test does not apply. These reports may change over
	// time.
	isProgress := func(event auditv1.Event) bool {
		return event.ObjectRef.Resource == "seeds" && event.ObjectRef.Subresource == "status"
	}
	if got := audit.Described(inGarden, func(event auditv1.Event) bool { return isOther(event) && !isProgress(event) }); len(got) > 0 {
		f.Errorf("the second replica wrote %q to the garden", got)
	}
}

// writesWith returns the writes to the seed with a credential, without leases and Events, in order.
func (f *fixture) writesWith(credential string) (writes []string) {
	f.Helper()
	events, _ := audit.Requests(f.T, f.seedAudit, seedUser, 0)
	for _, event := range events {
		if isOther(event) && slices.Contains(event.User.Extra[credentialID], credential) {
			writes = append(writes, strings.TrimSpace(audit.Describe(event)+" "+event.ObjectRef.Name))
		}
	}
	return writes
}
