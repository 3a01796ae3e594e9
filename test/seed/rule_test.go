package seed

import (
	"maps"
	"slices"
	"strings"

	"github.com/trellis-k8s/trellis/test/kit/audit"
	"github.com/trellis-k8s/trellis/test/kit/fleet"
)

// Reasons why the gardenlet of TestProgram does not use a right.
const (
	forShoots    = "only for Shoots: TestShoot"
	forBootstrap = "only to get and renew its certificate, and tokens: TestGardenlet"
	forBastions  = "only for Bastions: TestSeed"
	ownNamespace = "the namespace belongs to the Seed"
	forManaged   = "only for gardenlets that this one deploys: test/managedseeds"
)

// unusedBySeed are the rights that TestProgram does not use.
var unusedBySeed = map[string]string{
	"list cloudprofiles.core.gardener.cloud": forShoots, "watch cloudprofiles.core.gardener.cloud": forShoots,
	"list namespacedcloudprofiles.core.gardener.cloud": forShoots, "watch namespacedcloudprofiles.core.gardener.cloud": forShoots,
	"list exposureclasses.core.gardener.cloud": forShoots, "watch exposureclasses.core.gardener.cloud": forShoots,
	"get shoots.core.gardener.cloud": forShoots, "patch shoots.core.gardener.cloud": forShoots, "patch shoots/status.core.gardener.cloud": forShoots,
	"create backupentries.core.gardener.cloud": forShoots,
	"patch backupentries.core.gardener.cloud":  forShoots, "patch backupentries/status.core.gardener.cloud": forShoots,
	"get backupentries.core.gardener.cloud": forShoots, "delete backupentries.core.gardener.cloud": forShoots,
	"patch bastions.operations.gardener.cloud": forBastions, "patch bastions/status.operations.gardener.cloud": forBastions,
	"create certificatesigningrequests.certificates.k8s.io": forBootstrap, "get certificatesigningrequests.certificates.k8s.io": forBootstrap,
	"create certificatesigningrequests/seedclient.certificates.k8s.io": "the controller that approves certificates checks it",
	"create tokenreviews.authentication.k8s.io":                        forBootstrap, "create serviceaccounts/token": forBootstrap,
	"update seeds.core.gardener.cloud": "only if the configuration differs from the Seed",
	"create serviceaccounts":           ownNamespace, "get serviceaccounts": ownNamespace, "update serviceaccounts": ownNamespace, "patch serviceaccounts": ownNamespace,
	"list serviceaccounts": ownNamespace, "watch serviceaccounts": ownNamespace,
	"get secrets": ownNamespace, "update secrets": ownNamespace,
	"list configmaps": forShoots, "watch configmaps": forShoots,
	"delete serviceaccounts": ownNamespace, "patch controllerinstallations.core.gardener.cloud": "only for an extension with a chart: TestExtension",
	"list controllerdeployments.core.gardener.cloud": "only for an extension with a chart: TestExtension", "watch controllerdeployments.core.gardener.cloud": "as above",
	"patch events.events.k8s.io":       "only when an Event repeats itself",
	"delete seeds.core.gardener.cloud": forManaged, "patch managedseeds.seedmanagement.gardener.cloud": forManaged,
	"patch managedseeds/status.seedmanagement.gardener.cloud": forManaged, "patch gardenlets.seedmanagement.gardener.cloud": forManaged,
	"patch gardenlets/status.seedmanagement.gardener.cloud": forManaged,
}

func sorted(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }

// allowed checks the audit logs of both clusters against the rule of gardenlets. See docs/gardenlet.md.
func (p *program) allowed(skip int) {
	p.Helper()
	const ofManager = " (resource-manager)"
	for _, test := range []struct {
		file, user string
		skip       int
		allowed    []string
	}{
		{p.audit, seedUser, 0, []string{
			"create secrets", "patch secrets", "update secrets", "delete secrets", "patch managedresources.resources.gardener.cloud",
			"delete managedresources.resources.gardener.cloud", "create events.events.k8s.io", "patch events.events.k8s.io",
			"delete clusterroles.rbac.authorization.k8s.io" + ofManager, "delete clusterrolebindings.rbac.authorization.k8s.io" + ofManager,
			"delete mutatingwebhookconfigurations.admissionregistration.k8s.io" + ofManager,
			"delete validatingwebhookconfigurations.admissionregistration.k8s.io" + ofManager, "delete serviceaccounts" + ofManager,
			"delete services" + ofManager, "delete configmaps" + ofManager, "delete deployments.apps" + ofManager,
			"delete poddisruptionbudgets.policy" + ofManager, "delete verticalpodautoscalers.autoscaling.k8s.io" + ofManager,
		}},
		{gardens.Options.ControlPlane.AuditLog, p.gardenUser(), skip, []string{
			"create seeds.core.gardener.cloud", "patch seeds.core.gardener.cloud", "patch seeds/status.core.gardener.cloud",
			"create backupbuckets.core.gardener.cloud", "patch backupbuckets.core.gardener.cloud", "patch backupbuckets/status.core.gardener.cloud",
			"patch controllerinstallations.core.gardener.cloud", "patch controllerinstallations/status.core.gardener.cloud", "delete serviceaccounts",
			"delete backupbuckets.core.gardener.cloud", "create secrets", "patch secrets", "delete secrets",
			"create leases.coordination.k8s.io", "update leases.coordination.k8s.io", "create events.events.k8s.io", "patch events.events.k8s.io",
		}},
	} {
		events, _ := audit.Requests(p, test.file, test.user, test.skip)
		found := map[string]bool{}
		if test.user == p.gardenUser() {
			all, _ := audit.RequestsAndWatches(p, test.file, test.user, test.skip)
			fleet.CheckRights(p, p.garden, all, p.name, unusedBySeed)
		}
		for _, event := range events {
			if !audit.IsWrite(event) {
				continue
			}
			text := audit.Describe(event)
			if event.ObjectRef != nil && strings.HasPrefix(event.ObjectRef.Name, "gardener-resource-manager") &&
				event.ObjectRef.Resource != "managedresources" && event.ObjectRef.Resource != "secrets" {
				text += ofManager
			}
			found[text] = true
			if !slices.Contains(test.allowed, text) {
				p.Errorf("%s: %s %s is not allowed by the rule", test.user, text, event.RequestURI)
			}
		}
		p.Logf("writes of %s: %q", test.user, sorted(found))
		refused := audit.Described(events, audit.IsForbidden)
		if len(refused) > 0 && test.user != p.gardenUser() { // CheckRights knows which rights the garden grants later
			p.Errorf("%s lacks rights: %q", test.user, refused)
		}
	}
}
