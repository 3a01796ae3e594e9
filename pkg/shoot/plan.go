package shoot

import (
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/etcd"
	"github.com/trellis-k8s/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-k8s/trellis/pkg/component/kubecontrollermanager"
	"github.com/trellis-k8s/trellis/pkg/component/kubescheduler"
	"github.com/trellis-k8s/trellis/pkg/component/resourcemanager"
	"github.com/trellis-k8s/trellis/pkg/component/shootnamespace"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/flow/table"
	"github.com/trellis-k8s/trellis/pkg/requeue"
)

// Names of the bundles. Each is the name of a ManagedResource in the namespace of the control plane. The exception is
// bundleNamespace: its ManagedResource has the name of that namespace and is in gardenlet's namespace. Bundles with
// prefixShoot contain objects of the shoot cluster.
const (
	bundleNamespace           = "namespace"
	bundleAPIServerService    = "kube-apiserver-service"
	bundleEtcdMain            = "etcd-main"
	bundleEtcdEvents          = "etcd-events"
	bundleAPIServer           = kubeapiserver.Name
	bundleAPIServerAutoscaler = "kube-apiserver-scaling"
	bundleResourceManager     = "gardener-resource-manager"
	bundleAccess              = "shoot-access"
	bundleControllerManager   = kubecontrollermanager.Name
	bundleScheduler           = kubescheduler.Name

	prefixShoot                 = "shoot-core-"
	bundleResourceManagerRBAC   = prefixShoot + "gardener-resource-manager"
	bundleNamespaces            = prefixShoot + "namespaces"
	bundleGardenerAccess        = prefixShoot + "gardeneraccess"
	bundleControllerManagerRBAC = prefixShoot + "kube-controller-manager"
	bundleSchedulerRBAC         = prefixShoot + "kube-scheduler"
	bundleSystem                = prefixShoot + "system"
	bundleClusterIdentity       = prefixShoot + "cluster-identity"
)

// inEachCluster are the bundles with objects of the shoot cluster that each Shoot has.
var inEachCluster = []string{
	bundleResourceManagerRBAC, bundleNamespaces, bundleGardenerAccess, bundleControllerManagerRBAC, bundleSchedulerRBAC, bundleSystem,
	bundleClusterIdentity,
}

// required are the bundles without which a control plane does not work.
var required = []string{
	bundleAPIServerService, bundleEtcdMain, bundleEtcdEvents, bundleAPIServer, bundleResourceManager, bundleControllerManager,
}

// contents returns the table of contents of a control plane: all its parts, in the order of their creation.
func (in Inputs) contents() table.Table {
	parts := slices.Concat(in.controlPlane(), in.inShoot(), in.referencedParts(), in.recordParts())
	if in.Phase != phaseStays || in.emitted(bundleCopy) {
		parts = slices.Concat(in.copyParts(), parts)
	}
	if in.hasWorkers() {
		parts = slices.Concat(parts, []table.Part{in.scalingPart(), in.tunnelPart()}, in.machineParts(), in.nodeParts(), in.systemParts())
	}
	parts = append(parts, in.extensionParts()...)
	if in.Phase == phaseRestore {
		in.restored(parts)
	}
	return table.Table{
		Parts: parts,
		Key:   in.key, Prepare: in.prepare, Emitted: in.Emitted, Asleep: in.hibernated(),
		Uncontained: in.unknownNamespace(), OldCluster: in.unknownCluster(), Now: in.Now,
	}
}

// controlPlane returns the parts of a control plane in the seed. While the shoot hibernates, the programs stop in the reverse
// order.
func (in Inputs) controlPlane() []table.Part {
	var (
		secrets = in.unknownSecrets()
		// Extensions: by the time of their reconcile relative to the API server, and by that of their deletion.
		before, after, deletedEarly = in.extensionNames(true), in.extensionNames(false), in.extensionBundles(false)
		// What extensions do for nodes, except the infrastructure: it needs the API server.
		ofNodes = in.nodeBundles()
		// Programs that stop before the API server.
		controllers, clients = in.controllers(), append(in.controllers(), bundleResourceManager)
		inCluster            = in.inCluster()
		// Controllers must not be newer than the API server (Kubernetes, "Version Skew Policy"), so they wait until it is rolled out.
		controls, controlsAsleep = []table.Need{in.ready(bundleResourceManager), table.RolledOut(bundleAPIServer)},
			[]table.Need{table.Healthy(append(after, ofNodes...)...)}
	)
	return []table.Part{
		// The namespace with the Cluster, and the Service of the API server.
		{
			Name: bundleNamespace, Contains: true, Objects: in.namespace, Unknown: table.Join(in.unknownCloudProfile(), in.unknownZones()),
			Adjust: in.adjustNamespace,
		},
		{
			Name: bundleAPIServerService, Objects: in.apiServerService, Adjust: in.recordRoutes,
			DeletedAfter: []string{bundleExposure, bundleAPIServer, bundleInternalRecord, bundleExternalRecord},
		},
		in.exposurePart(),

		// etcd
		in.etcdPart(bundleEtcdMain, etcd.RoleMain), in.etcdPart(bundleEtcdEvents, etcd.RoleEvents),

		// The API server and its autoscaler.
		{
			Name: bundleAPIServer, Objects: in.apiServer, Unknown: table.Join(secrets, in.unknownUserFiles(), in.unknownAdvertised()), ReadsCluster: true,
			Needs:        []table.Need{table.Healthy(before...), in.ready(bundleEtcdMain, bundleEtcdEvents), table.Applied(bundleAPIServerService)},
			NeedsAsleep:  []table.Need{table.RolledOut(clients...), table.Applied(bundleAPIServerService)},
			DeletedAfter: slices.Concat([]string{bundleAPIServerAutoscaler, bundleResourceManager}, controllers, deletedEarly, ofNodes), Adjust: adjustAPIServer,
		},
		{
			Name: bundleAPIServerAutoscaler, Objects: in.apiServerAutoscaler, Absent: in.asleep(), Removed: true,
			Needs: []table.Need{table.Applied(bundleAPIServer)},
		},

		// The resource-manager, the Secrets with access to the API server, and the controllers. Only Shoots with workers have a scheduler.
		{
			Name: bundleResourceManager, Objects: in.resourceManager, ReadsCluster: true,
			Unknown: table.Join(secrets, in.unknownToken(bundleResourceManager, resourcemanager.Account)),
			Needs:   []table.Need{in.ready(bundleAPIServer)}, NeedsAsleep: controlsAsleep,
			DeletedAfter: slices.Concat(controllers, inCluster, deletedEarly, ofNodes),
		},
		{Name: bundleAccess, Objects: in.accessSecrets, DeletedAfter: slices.Concat(controllers, in.allExtensionBundles())},
		{
			Name: bundleControllerManager, Objects: in.controllerManager, ReadsCluster: true,
			Unknown: table.Join(secrets, in.unknownToken(bundleControllerManager, kubecontrollermanager.Name)),
			Needs:   controls, NeedsAsleep: controlsAsleep, DeletedAfter: slices.Concat(inCluster, deletedEarly, ofNodes),
		},
		{
			Name: bundleScheduler, Objects: in.scheduler, Absent: in.workerless(), ReadsCluster: true,
			Unknown: table.Join(secrets, in.unknownToken(bundleScheduler, kubescheduler.Name)),
			Needs:   controls, NeedsAsleep: controlsAsleep, DeletedAfter: slices.Concat(inCluster, deletedEarly, ofNodes),
		},
	}
}

// etcdPart returns the part of an etcd. It stops after the API server.
func (in Inputs) etcdPart(name string, role etcd.Role) table.Part {
	return table.Part{
		Name: name, Objects: in.etcd(role), Unknown: table.Join(in.unknownSecrets(), in.unknownEntry(role)), Needs: in.copiedFor(role),
		NeedsAsleep: append(in.copiedFor(role), table.RolledOut(bundleAPIServer)), DeletedAfter: []string{bundleAPIServer}, Confirmed: true, Adjust: in.adjustEtcd(role),
	}
}

// inShoot returns the parts in the shoot cluster, which its resource-manager applies. They remain unchanged while the shoot
// hibernates, because the resource-manager does not run.
func (in Inputs) inShoot() []table.Part {
	asleep, needs := in.hibernated(), []table.Need{table.Applied(bundleResourceManager)}
	return []table.Part{
		{
			Name: bundleResourceManagerRBAC, Target: table.Shoot, Objects: in.resourceManagerRBAC, Unknown: in.unknownRegistration(), Unchanged: asleep,
			Needs: needs, Adjust: keepObjects,
		},
		{Name: bundleNamespaces, Target: table.Shoot, Objects: in.namespaces, Unchanged: asleep, Needs: needs, Adjust: keepObjects},
		{Name: bundleGardenerAccess, Target: table.Shoot, Objects: in.gardenerAccess, Unchanged: asleep, Needs: needs},
		// It collects garbage until the API server stops: what is deleted with its dependents, such as DaemonSets, waits for it.
		{Name: bundleControllerManagerRBAC, Target: table.Shoot, Objects: in.controllerManagerRBAC, Unchanged: asleep, Needs: needs, Adjust: keepObjects},
		{Name: bundleSchedulerRBAC, Target: table.Shoot, Objects: in.schedulerRBAC, Absent: in.workerless(), Unchanged: asleep, Needs: needs},
		{Name: bundleSystem, Target: table.Shoot, Objects: in.system, Unchanged: asleep, Needs: needs},
		{Name: bundleClusterIdentity, Target: table.Shoot, Objects: in.clusterIdentity, Unchanged: asleep, Unknown: in.unknownIdentity(), Needs: needs},
	}
}

// Plan returns the flow of a Shoot. It depends only on its inputs.
func Plan(in Inputs) (flow.Plan, error) {
	var err error
	plan := flow.Plan{Next: requeue.Earlier(in.SecretsRenewed, in.Routes.Ends())}
	switch {
	case in.Deleting:
		plan = deletion(in)
		in.addLimits(&plan)
	case in.Phase == phaseMigrate:
		plan = in.migration()
	case in.lostOnArrival() != "":
		plan.Waits = append(plan.Waits, flow.Wait{
			Name: waitUnmovable, Reason: in.lostOnArrival(), Holds: in.Emitted, Deadline: in.Now, Code: corev1beta1.ErrorConfigurationProblem,
		})
	case in.lacksIssuer() != "": // without an error code, because no user can correct it: it ends when an operator has
		plan.Waits = append(plan.Waits, flow.Wait{Name: "issuer-known", Reason: in.lacksIssuer(), Holds: in.Emitted, Deadline: in.Now})
	case in.Registrations == nil:
		plan.Waits = append(plan.Waits, flow.Wait{
			Name: "extensions-known", Reason: "the ControllerRegistrations of the garden are not known", Holds: in.Emitted,
		})
	case len(in.refusedExtensions()) > 0 && !in.Stopped:
		plan.Waits = append(plan.Waits, flow.Wait{
			Name: "extensions-valid", Reason: strings.Join(in.refusedExtensions(), "; ") + ": remove it", Holds: in.Emitted,
			Deadline: in.Now, Code: corev1beta1.ErrorConfigurationProblem,
		})
	default:
		in.contents().AddAll(&plan)
		if err := in.markMutated(plan.Bundles); err != nil {
			return plan, err
		}
		plan.Tasks = in.due()
		in.addLimits(&plan)
		if why := in.unrestoredMachines(); why != "" {
			plan.Waits = append(plan.Waits, flow.Wait{Name: waitMachines, Reason: why})
		}
	}
	plan.Window, plan.AtOnce = in.window(), in.atOnce()
	plan.Generation = in.Shoot.Generation
	if plan.Inputs, err = in.digest(); err != nil {
		return plan, err
	}
	plan.Program, err = in.program()
	return plan, err
}

// prepare sets what all bundles of a cluster have.
func (in Inputs) prepare(target table.Target, bundle *flow.Bundle) {
	in.markSpread(bundle.Objects)
	if target == table.Shoot {
		bundle.Labels = map[string]string{labelOrigin: originGardener}
		return
	}
	bundle.Spec.Class = ptr.To(classSeed)
	if bundle.Namespace == in.Namespace {
		bundle.Spec.ServiceAccountName = shootnamespace.Account // which is in the bundle of the namespace
	}
}

// ready is a dependency on servers. While authorities change, clients wait until all replicas of their servers are rolled out.
func (in Inputs) ready(names ...string) table.Need {
	if cycles(in.rotation()).AuthoritiesChange() {
		return table.RolledOut(names...)
	}
	return table.Healthy(names...)
}

// inCluster returns the bundles with objects of the shoot cluster.
func (in Inputs) inCluster() []string {
	if in.hasWorkers() {
		return slices.Concat(inEachCluster, []string{bundleAPIServerRights, bundleNodeAgent}, in.systemBundles())
	}
	return inEachCluster
}

// controllers are the bundles of the programs that need the resource-manager.
func (in Inputs) controllers() []string {
	all := []string{bundleControllerManager}
	if in.hasWorkers() {
		all = append(append(all, bundleScheduler), in.machineManagers()...)
	}
	if in.scales() {
		all = append(all, bundleScaling)
	}
	return all
}

// workerless returns why the Shoot has no scheduler, empty if it has one.
func (in Inputs) workerless() string {
	if in.hasWorkers() {
		return ""
	}
	return "the Shoot has no workers"
}

// asleep returns why a part that only running programs need is absent, empty while they run.
func (in Inputs) asleep() string {
	if in.hibernated() {
		return "the Shoot hibernates"
	}
	return ""
}

// labelOrigin distinguishes the flow's ManagedResources for the shoot cluster from those of extensions.
const (
	labelOrigin    = "origin"
	originGardener = "gardener"
)

// isOfShoot reports whether a bundle contains objects of the shoot cluster.
func isOfShoot(name string) bool {
	return strings.HasPrefix(name, prefixShoot) || strings.HasPrefix(name, prefixAddon)
}

// keepObjects keeps the objects of a bundle when its ManagedResource is deleted.
func keepObjects(bundle *flow.Bundle) { bundle.Spec.KeepObjects = ptr.To(true) }

// adjustEtcd records that the main etcd begins with backups, which its declaration says from then on.
func (in Inputs) adjustEtcd(role etcd.Role) func(*flow.Bundle) {
	return func(bundle *flow.Bundle) {
		adjustEtcd(bundle)
		if backup := in.backup(role); backup != nil && backup.Restore {
			bundle.Choices = map[string]string{choiceRestoring: "true"}
		}
	}
}

// adjustEtcd makes each change of the bundle trigger the etcd operator, and only changes.
func adjustEtcd(bundle *flow.Bundle) {
	bundle.Spec.DriftDetection = flow.OperationOnlyOnChange()
	bundle.Spec.HealthChecks = []resourcesv1alpha1.HealthCheck{etcd.Health()}
}

// adjustAPIServer makes the API server count as ready as soon as it answers, not only after it has been available for some time.
func adjustAPIServer(bundle *flow.Bundle) {
	bundle.Spec.HealthChecks = []resourcesv1alpha1.HealthCheck{kubeapiserver.Health()}
}

// unknownToken reports that the token with which a program accesses the API server is missing. A program that hibernation stops needs none.
func (in Inputs) unknownToken(bundle, account string) string {
	secret := accessSecret(account)
	if in.hibernated() || in.hasToken(secret) {
		return ""
	}
	return "Secret " + in.Namespace + "/" + secret + " has no valid token for " + bundle
}

func (in Inputs) unknownCloudProfile() string {
	switch {
	case in.CloudProfile == nil && in.Unread != "":
		return in.Unread
	case in.ProfilePending:
		return "the controller-manager has not yet computed the status of the NamespacedCloudProfile of spec.cloudProfile"
	case in.CloudProfile == nil:
		return "the CloudProfile of spec.cloudProfile does not exist"
	}
	return ""
}

func (in Inputs) unknownIdentity() string {
	if in.ClusterIdentity == "" {
		return "the identity of the cluster is not known"
	}
	return ""
}
