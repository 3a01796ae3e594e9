package gardenlet

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/kit/audit"
)

// keepsTheLeader checks that a replica which could not take over is not ready, so that no rollout replaces the leader, and that the check changes
// nothing. Its configuration does not match the cluster, or the garden refuses the Seed in it.
func (f *fixture) keepsTheLeader() {
	process, health := f.process, f.health
	defer func() { f.process, f.health = process, health }()
	before := f.getSeed().ResourceVersion
	_, gardenLines := audit.Requests(f.T, f.gardenAudit, gardenUser, 0)
	for _, broken := range []struct{ from, to, says string }{
		{"services: 10.0.0.0/24", "services: 10.99.0.0/24", "does not match the seed cluster"},
		{"domain: ingress.one.example.org", "domain: ingress.other.example.org", "spec.ingress.domain"},
	} {
		f.configure()
		content, err := os.ReadFile(f.config)
		kit.Must(f, err)
		changed := strings.Replace(string(content), broken.from, broken.to, 1)
		if changed == string(content) {
			f.Fatalf("the configuration has no %q", broken.from)
		}
		kit.Must(f, os.WriteFile(f.config, []byte(changed), 0o600))
		f.start()
		kit.Eventually(f, "the log says why the replica could not take over: "+broken.says, func() string {
			text, err := os.ReadFile(filepath.Join(f.seedPlane.Dir(), "gardenlet.log"))
			kit.Must(f, err)
			for line := range strings.Lines(string(text)) {
				if strings.Contains(line, "could not take over") && strings.Contains(line, broken.says) {
					return ""
				}
			}
			return fmt.Sprintf("/readyz responds %d", f.status("/readyz"))
		})
		if status := f.status("/readyz"); status != http.StatusInternalServerError {
			f.Errorf("%s: /readyz responds %d", broken.says, status)
		}
		if status := f.status("/healthz"); status != http.StatusOK {
			f.Errorf("%s: /healthz responds %d", broken.says, status)
		}
		kit.Must(f, f.process.Stop(0))
	}
	f.renewsLease()
	inGarden, _ := audit.Requests(f.T, f.gardenAudit, gardenUser, gardenLines)
	dryRuns := audit.Described(inGarden, func(event auditv1.Event) bool {
		return isOther(event) && strings.Contains(event.RequestURI, "dryRun=All")
	})
	if len(dryRuns) == 0 || f.getSeed().ResourceVersion != before {
		f.Errorf("the Seed was tried with %q, and has changed from resourceVersion %s to %s", dryRuns, before, f.getSeed().ResourceVersion)
	}
}
