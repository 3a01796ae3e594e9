package shoot

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/kit/audit"
	"github.com/trellis-k8s/trellis/test/kit/charts"
	"github.com/trellis-k8s/trellis/test/kit/fleet"
)

// Reasons why the gardenlet of TestShoot does not use a right.
const (
	forSeeds     = "only for Seeds: TestProgram of test/seed"
	forBootstrap = "only to get and renew its certificate, and tokens: TestGardenlet"
	forBastions  = "only for Bastions: TestSeed of test/seed"
	forMoves     = "only for control planes that move: TestGardenletsMoveOnlyTheirBackups"
	ownNamespace = "the namespace belongs to the Seed"
	notNamed     = "the Shoot of the test refers to none"
)

// unusedByShoot are the rights that TestShoot does not use.
var unusedByShoot = map[string]string{
	"list controllerinstallations.core.gardener.cloud":  "only for extensions: TestExtensions",
	"watch controllerinstallations.core.gardener.cloud": "only for extensions: TestExtensions",
	"patch shootstates.core.gardener.cloud":             "only when the Secrets of the control plane change",
	"get shoots.core.gardener.cloud":                    "only when another controller changes a Shoot while its finalizer is removed",
	"list namespacedcloudprofiles.core.gardener.cloud":  notNamed, "watch namespacedcloudprofiles.core.gardener.cloud": notNamed,
	"list exposureclasses.core.gardener.cloud": notNamed, "watch exposureclasses.core.gardener.cloud": notNamed,
	"list controllerdeployments.core.gardener.cloud": forSeeds, "watch controllerdeployments.core.gardener.cloud": forSeeds,
	"get seeds.core.gardener.cloud": forSeeds, "create seeds.core.gardener.cloud": forSeeds, "update seeds.core.gardener.cloud": forSeeds,
	"patch seeds.core.gardener.cloud": forSeeds, "patch seeds/status.core.gardener.cloud": forSeeds,
	"create backupbuckets.core.gardener.cloud": forSeeds, "list backupbuckets.core.gardener.cloud": forSeeds, "watch backupbuckets.core.gardener.cloud": forSeeds,
	"patch backupbuckets.core.gardener.cloud": forSeeds, "delete backupbuckets.core.gardener.cloud": forSeeds, "patch backupbuckets/status.core.gardener.cloud": forSeeds,
	"create backupentries.core.gardener.cloud": "the Seed of the test has no backups: TestGardenletsHarmOnlyTheirSeed",
	"list backupentries.core.gardener.cloud":   forSeeds, "watch backupentries.core.gardener.cloud": forSeeds,
	"patch backupentries.core.gardener.cloud": forSeeds, "patch backupentries/status.core.gardener.cloud": forSeeds,
	"get backupentries.core.gardener.cloud": forMoves, "delete backupentries.core.gardener.cloud": forMoves,
	"patch controllerinstallations.core.gardener.cloud": forSeeds, "patch controllerinstallations/status.core.gardener.cloud": forSeeds,
	"list bastions.operations.gardener.cloud": forBastions, "watch bastions.operations.gardener.cloud": forBastions,
	"patch bastions.operations.gardener.cloud": forBastions, "patch bastions/status.operations.gardener.cloud": forBastions,
	"create certificatesigningrequests.certificates.k8s.io": forBootstrap, "get certificatesigningrequests.certificates.k8s.io": forBootstrap,
	"create certificatesigningrequests/seedclient.certificates.k8s.io": "the controller that approves certificates checks it",
	"create tokenreviews.authentication.k8s.io":                        forBootstrap,
	"patch events.events.k8s.io":                                       "only when an Event repeats itself",
	"get configmaps":                                                   forSeeds, "list configmaps": notNamed, "watch configmaps": notNamed,
	"create serviceaccounts": ownNamespace, "get serviceaccounts": ownNamespace, "update serviceaccounts": ownNamespace, "patch serviceaccounts": ownNamespace,
	"list serviceaccounts": ownNamespace, "watch serviceaccounts": ownNamespace, "delete serviceaccounts": ownNamespace, "create serviceaccounts/token": ownNamespace,
	"create secrets": ownNamespace, "get secrets": ownNamespace, "update secrets": ownNamespace, "patch secrets": ownNamespace, "delete secrets": ownNamespace,
	"list workloadidentities.security.gardener.cloud": notNamed, "watch workloadidentities.security.gardener.cloud": notNamed,
	"create workloadidentities/token.security.gardener.cloud": notNamed,
	"create leases.coordination.k8s.io":                       forSeeds, "get leases.coordination.k8s.io": forSeeds, "update leases.coordination.k8s.io": forSeeds,
	"patch configmaps": "only when the authority of the API server changes", "patch internalsecrets.core.gardener.cloud": "only when the authority of clients changes",
	"delete shootstates.core.gardener.cloud":          "the Shoot is deleted after the check",
	"delete seeds.core.gardener.cloud":                forSeeds,
	"list managedseeds.seedmanagement.gardener.cloud": forSeeds, "watch managedseeds.seedmanagement.gardener.cloud": forSeeds,
	"list gardenlets.seedmanagement.gardener.cloud": forSeeds, "watch gardenlets.seedmanagement.gardener.cloud": forSeeds,
	"patch managedseeds.seedmanagement.gardener.cloud": forSeeds, "patch managedseeds/status.seedmanagement.gardener.cloud": forSeeds,
	"patch gardenlets.seedmanagement.gardener.cloud": forSeeds, "patch gardenlets/status.seedmanagement.gardener.cloud": forSeeds,
	"list shootstates.core.gardener.cloud": "only for a BackupEntry that is restored", "watch shootstates.core.gardener.cloud": "only for a BackupEntry that is restored",
}

// restrict gives gardenlet the rights of its chart and of the controller-manager in the garden, instead of all rights. The
// returned function compares them with the requests so far.
func (w *world) restrict() (check func()) {
	w.Helper()
	for _, name := range []string{constants.SystemPublicNamespace, constants.SystemSeedLeaseNamespace, constants.GardenNamespace} {
		w.create(w.garden, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	charts.Apply(w, w.garden, "gardenlet", map[string]any{"mode": "garden", "seeds": []any{map[string]any{"name": seedName}}}, charts.IsRight)
	fleet.GrantRights(w, w.gardens.Config(), w.garden)
	if w.garden.Get(w.Context(), client.ObjectKey{Name: seedName}, &corev1beta1.Seed{}) == nil {
		kit.Eventually(w, "gardenlet has rights in the namespace of its Seed", func() string {
			key := client.ObjectKey{Namespace: constants.PrefixSeedNamespace + seedName, Name: constants.PrefixSeedUser + seedName + ":gardenlet-rights"}
			return kit.TextOf(w.garden.Get(w.Context(), key, &rbacv1.RoleBinding{}))
		})
	}
	w.gardenUser = constants.PrefixSeedUser + seedName
	for _, left := range []client.Object{&corev1.ConfigMap{}, &corev1beta1.InternalSecret{}} { // of other tests, with the same Shoot
		kit.Must(w, w.garden.DeleteAllOf(w.Context(), left, client.InNamespace(namespace)))
	}
	log := gardens.Options.ControlPlane.AuditLog
	_, before := audit.Requests(w, log, w.gardenUser, 0)
	return func() {
		w.Helper()
		requests, _ := audit.RequestsAndWatches(w, log, w.gardenUser, before)
		fleet.CheckRights(w, w.garden, requests, seedName, unusedByShoot)
	}
}
