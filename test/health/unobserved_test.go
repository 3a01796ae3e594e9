package health

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit/inprocess"
)

// TestWorkloadThatNoControllerObserves checks that a workload is unhealthy after 30 seconds if no controller observes it, regardless of
// how often the resource-manager checks it without an event.
func TestWorkloadThatNoControllerObserves(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs a control plane, which -short excludes")
	}
	cp, err := controlplane.Start(t.Context(), controlplane.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, cp.Stop()) })
	prepare(t, cp)
	c, err := client.New(cp.Config(), client.Options{Scheme: scheme(t)})
	must(t, err)
	for kind, syncPeriod := range map[string]time.Duration{
		"Deployment": time.Hour, "StatefulSet": 30 * time.Second, "DaemonSet": 10 * time.Second, "ReplicaSet": time.Second,
	} {
		t.Run(fmt.Sprintf("%s, looked at every %s", kind, syncPeriod), func(t *testing.T) {
			t.Parallel()
			f := &fixture{T: t, ctx: t.Context(), client: c, controlPlane: cp, namespace: "default"}
			f.manager = f.startManager(func(r *inprocess.ResourceManager) { r.SyncPeriod = syncPeriod })
			name := map[string]string{"Deployment": "one", "StatefulSet": "two", "DaemonSet": "three", "ReplicaSet": "four"}[kind]
			history := f.follow(name)
			f.manage(name, workload(kind, "", ""))
			f.eventuallySays(name, unhealthy(kind+"Unhealthy", "observed generation outdated (0/1)"), want{})
			f.eventually("the history shows that it was never reported as healthy", func() string {
				got := history.statuses(resourcesv1alpha1.ResourcesHealthy)
				if strings.HasSuffix(got, "Unknown False") && !strings.Contains(got, "True") {
					return ""
				}
				return "ResourcesHealthy was " + got
			})
		})
	}
}
