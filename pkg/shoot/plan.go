package shoot

import (
	"slices"
	"strings"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/etcd"
	"github.com/trellis-k8s/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-k8s/trellis/pkg/component/kubecontrollermanager"
	"github.com/trellis-k8s/trellis/pkg/component/kubescheduler"
	"github.com/trellis-k8s/trellis/pkg/component/resourcemanager"
	"github.com/trellis-k8s/trellis/pkg/component/shootnamespace"
	"github.com/trellis-k8s/trellis/pkg/flow"
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

// inCluster are the bundles with objects of the shoot cluster.
var inCluster = []string{
	bundleResourceManagerRBAC, bundleNamespaces, bundleGardenerAccess, bundleControllerManagerRBAC, bundleSchedulerRBAC, bundleSystem,
	bundleClusterIdentity,
}

// required are the bundles without which a control plane does not work.
var required = []string{
	bundleAPIServerService, bundleEtcdMain, bundleEtcdEvents, bundleAPIServer, bundleResourceManager, bundleControllerManager,
}

// part is one line of the table of contents: a bundle, with the conditions for its creation and deletion.
type part struct {
	name    string
	objects func() ([]client.Object, error)
	// absent leaves the part out of the plan and retains its existing objects. removed deletes them.
	absent, removed bool
	// unknown names the inputs of the part that are not known yet. It is empty if all are known.
	unknown string
	// confirmed makes the flow confirm the deletion of the objects first, as the guards of their kinds require.
	confirmed bool
	// needs are the parts that must be ready before this one is applied. readsCluster also makes it wait for the Cluster of
	// this generation of the Shoot.
	needs        []resourcesv1alpha1.Dependency
	readsCluster bool
	// deletedAfter are the parts that must be deleted before this one. If it is nil, these are the parts that need this one.
	// outlives are further ones, which count only if the whole Shoot is deleted.
	deletedAfter, outlives []string
	// adjust changes the bundle before it is added to the plan. It may be nil.
	adjust func(*flow.Bundle)
}

// order is what the programs of a control plane, and the objects in the shoot cluster, wait for.
type order struct {
	etcd, apiServer, resourceManager, controllers, shoot []resourcesv1alpha1.Dependency
}

// order returns the order in which programs start. While the shoot hibernates, they stop in the reverse order.
func (in Inputs) order() order {
	// While authorities change, clients wait until all replicas of their servers are rolled out.
	ready := resourcesv1alpha1.UntilHealthy
	if in.authoritiesChange() {
		ready = resourcesv1alpha1.UntilRolledOut
	}
	order := order{
		apiServer: append(in.on(resourcesv1alpha1.UntilHealthy, in.extensionNames(true)...), in.on(ready, bundleEtcdMain, bundleEtcdEvents)...),
		// The resource-manager applies the objects in the shoot cluster.
		resourceManager: in.on(ready, bundleAPIServer), shoot: in.on(resourcesv1alpha1.UntilApplied, bundleResourceManager),
		// Controllers must not be newer than the API server (Kubernetes, "Version Skew Policy"), so they wait until it is rolled out.
		controllers: append(in.on(ready, bundleResourceManager), in.on(resourcesv1alpha1.UntilRolledOut, bundleAPIServer)...),
	}
	if in.hibernated() {
		order.etcd = in.on(resourcesv1alpha1.UntilRolledOut, bundleAPIServer)
		order.apiServer = in.on(resourcesv1alpha1.UntilRolledOut, in.clients()...)
		order.resourceManager = in.on(resourcesv1alpha1.UntilHealthy, in.extensionNames(false)...)
		order.controllers = order.resourceManager
	}
	order.apiServer = append(order.apiServer, in.on(resourcesv1alpha1.UntilApplied, bundleAPIServerService)...)
	return order
}

// contents is the table of contents of a control plane: all its parts, in the order of their creation. While the shoot
// hibernates, the programs stop in the reverse order. Objects in the shoot cluster then remain unchanged, because its
// resource-manager does not run.
func (in Inputs) contents() []part {
	secrets, hibernated := in.unknownSecrets(), in.hibernated()
	order, controllers, early := in.order(), in.controllers(), in.extensionBundles(false)
	server, programs := []string{bundleAPIServer}, slices.Concat([]string{bundleAPIServerAutoscaler, bundleResourceManager}, controllers)
	parts := []part{
		// The Service of the API server.
		{
			name: bundleAPIServerService, objects: in.apiServerService,
			deletedAfter: []string{bundleAPIServer, bundleInternalRecord, bundleExternalRecord},
		},

		// etcd
		{
			name: bundleEtcdMain, objects: in.etcd(etcd.RoleMain), unknown: secrets, needs: order.etcd,
			deletedAfter: server, confirmed: true, adjust: adjustEtcd,
		},
		{
			name: bundleEtcdEvents, objects: in.etcd(etcd.RoleEvents), unknown: secrets, needs: order.etcd,
			deletedAfter: server, confirmed: true, adjust: adjustEtcd,
		},

		// The API server and its autoscaler.
		{
			name: bundleAPIServer, objects: in.apiServer, unknown: join(secrets, in.unknownUserFiles()),
			needs: order.apiServer, readsCluster: true, deletedAfter: slices.Concat(programs, early), adjust: adjustAPIServer,
		},
		{
			name: bundleAPIServerAutoscaler, objects: in.apiServerAutoscaler, removed: hibernated,
			needs: in.on(resourcesv1alpha1.UntilApplied, bundleAPIServer),
		},

		// The resource-manager, the Secrets with access to the API server, and the controllers.
		{
			name: bundleResourceManager, objects: in.resourceManager,
			unknown: join(secrets, in.unknownToken(bundleResourceManager, resourcemanager.Account)), needs: order.resourceManager,
			readsCluster: true, deletedAfter: slices.Concat(controllers, inCluster, early),
		},
		{name: bundleAccess, objects: in.accessSecrets, deletedAfter: slices.Concat(controllers, early, in.extensionBundles(true))},
		{
			name: bundleControllerManager, objects: in.controllerManager,
			unknown: join(secrets, in.unknownToken(bundleControllerManager, kubecontrollermanager.Name)), needs: order.controllers,
			readsCluster: true, deletedAfter: slices.Concat(inCluster, early),
		},

		// Objects in the shoot cluster.
		{name: bundleResourceManagerRBAC, objects: in.resourceManagerRBAC, absent: hibernated, needs: order.shoot, adjust: keepObjects},
		{name: bundleNamespaces, objects: in.namespaces, absent: hibernated, needs: order.shoot, adjust: keepObjects},
		{name: bundleGardenerAccess, objects: in.gardenerAccess, absent: hibernated, needs: order.shoot},
		{name: bundleControllerManagerRBAC, objects: in.controllerManagerRBAC, absent: hibernated, needs: order.shoot},
		{name: bundleSystem, objects: in.system, absent: hibernated, needs: order.shoot},
		{name: bundleClusterIdentity, objects: in.clusterIdentity, absent: hibernated, unknown: in.unknownIdentity(), needs: order.shoot},
	}
	// The scheduler, copies of referenced objects, DNS records, and extensions.
	schedulers := in.schedulerParts(secrets, order.controllers, order.shoot, slices.Concat(inCluster, early))
	return in.inNamespace(slices.Concat(parts, schedulers, in.referencedParts(), in.recordParts(), in.extensionParts()))
}

// inNamespace returns the part of the namespace and the given ones, which wait for what they need of it.
func (in Inputs) inNamespace(parts []part) []part {
	// All parts need the namespace. A dependency between ManagedResources cannot express this, because the shoot's
	// resource-manager only sees the ManagedResources of its own namespace.
	var inside []string
	for i := range parts {
		inside = append(inside, parts[i].name)
		if parts[i].readsCluster {
			parts[i].unknown = join(parts[i].unknown, in.unknownCluster())
		}
		if parts[i].unknown == "" {
			parts[i].unknown = in.unknownNamespace()
		}
	}
	namespace := part{
		name: bundleNamespace, objects: in.namespace, unknown: join(in.unknownCloudProfile(), in.unknownZones()),
		deletedAfter: inside, adjust: in.adjustNamespace,
	}
	return append([]part{namespace}, parts...)
}

// schedulerParts returns the parts of the scheduler, which only Shoots with workers have. Its order is that of the controllers.
func (in Inputs) schedulerParts(secrets string, controllerNeeds, shootNeeds []resourcesv1alpha1.Dependency, after []string) []part {
	if !in.hasWorkers() {
		return nil
	}
	return []part{
		{
			name: bundleScheduler, objects: in.scheduler,
			unknown: join(secrets, in.unknownToken(bundleScheduler, kubescheduler.Name)), needs: controllerNeeds,
			readsCluster: true, deletedAfter: after,
		},
		{name: bundleSchedulerRBAC, objects: in.schedulerRBAC, absent: in.hibernated(), needs: shootNeeds},
	}
}

// clients are the bundles of the programs that stop before the API server when the shoot hibernates.
func (in Inputs) clients() []string { return append(in.controllers(), bundleResourceManager) }

// controllers are the bundles of the programs that need the resource-manager.
func (in Inputs) controllers() []string {
	names := []string{bundleControllerManager}
	if in.hasWorkers() {
		names = append(names, bundleScheduler)
	}
	return names
}

// Plan returns the flow of a Shoot. It depends only on its inputs.
func Plan(in Inputs) (flow.Plan, error) {
	var err error
	plan := flow.Plan{Next: in.SecretsRenewed}
	switch fields := in.refused(); {
	case in.Deleting:
		plan = deletion(in)
		in.addLimits(&plan)
	case len(fields) > 0:
		plan.Waits = append(plan.Waits, flow.Wait{
			Name: "shoot-valid", Reason: "this version of gardenlet does not support " + strings.Join(fields, ", ") + ": " + in.howToRemove(fields),
			Holds: in.Emitted, Deadline: in.Now, Code: corev1beta1.ErrorConfigurationProblem,
		})
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
		for _, part := range in.contents() {
			in.add(&plan, part)
		}
		plan.Tasks = in.due()
		in.addLimits(&plan)
	}
	plan.Window, plan.AtOnce = in.window(), in.atOnce()
	if plan.Inputs, err = in.digest(); err != nil {
		return plan, err
	}
	plan.Program, err = in.program()
	return plan, err
}

// add adds a part to a plan: as a bundle, as a tombstone if it must be deleted, or as a wait if it cannot be applied yet.
func (in Inputs) add(plan *flow.Plan, part part) {
	key := in.key(part.name)
	switch {
	case part.absent, part.removed && !in.emitted(part.name):
	case part.removed:
		plan.Tombstones = append(plan.Tombstones, flow.Tombstone{Key: key, Confirm: part.confirmed, After: []flow.Key{}})
	case part.unknown != "":
		plan.Waits = append(plan.Waits, flow.Wait{Name: part.name + "-known", Reason: part.unknown, Holds: []flow.Key{key}})
	default:
		bundle, err := in.bundle(part)
		if err != nil {
			// The declared values of this part are invalid. The other parts do not need them.
			plan.Waits = append(plan.Waits, flow.Wait{
				Name: part.name + "-valid", Reason: err.Error(), Holds: []flow.Key{key},
				Deadline: in.Now, Code: corev1beta1.ErrorRetryableConfigurationProblem,
			})
			return
		}
		plan.Bundles = append(plan.Bundles, bundle)
	}
}

// bundle returns the bundle of a part.
func (in Inputs) bundle(part part) (flow.Bundle, error) {
	objects, err := part.objects()
	if err != nil {
		return flow.Bundle{}, err
	}
	in.markSpread(objects)
	bundle := flow.Bundle{Key: in.key(part.name), Objects: objects, Spec: resourcesv1alpha1.ManagedResourceSpec{DependsOn: part.needs}}
	if isOfShoot(part.name) {
		bundle.Labels = map[string]string{labelOrigin: originGardener}
	} else {
		bundle.Spec.Class = ptr.To(classSeed)
		if bundle.Namespace == in.Namespace {
			bundle.Spec.ServiceAccountName = shootnamespace.Account // which is in the bundle of the namespace
		}
	}
	if part.deletedAfter != nil {
		bundle.DeleteAfter = in.keys(part.deletedAfter...)
	}
	if part.adjust != nil {
		part.adjust(&bundle)
	}
	return bundle, nil
}

// labelOrigin distinguishes the flow's ManagedResources for the shoot cluster from those of extensions.
const (
	labelOrigin    = "origin"
	originGardener = "gardener"
)

// isOfShoot reports whether a bundle contains objects of the shoot cluster.
func isOfShoot(name string) bool { return strings.HasPrefix(name, prefixShoot) }

// on returns dependencies on the parts with the given names.
func (in Inputs) on(until resourcesv1alpha1.DependencyUntil, names ...string) []resourcesv1alpha1.Dependency {
	return on(until, in.keys(names...)...)
}

// keys returns the keys of bundles. It is never nil.
func (in Inputs) keys(names ...string) []flow.Key {
	keys := make([]flow.Key, 0, len(names))
	for _, name := range names {
		keys = append(keys, in.key(name))
	}
	return keys
}

// on returns dependencies on the given bundles.
func on(until resourcesv1alpha1.DependencyUntil, keys ...flow.Key) []resourcesv1alpha1.Dependency {
	var needs []resourcesv1alpha1.Dependency
	for _, key := range keys {
		needs = append(needs, resourcesv1alpha1.Dependency{Namespace: key.Namespace, Name: key.Name, Until: until})
	}
	return needs
}

// keepObjects keeps the objects of a bundle when its ManagedResource is deleted.
func keepObjects(bundle *flow.Bundle) { bundle.Spec.KeepObjects = ptr.To(true) }

// adjustEtcd makes each change of the bundle trigger the etcd operator, and only changes.
func adjustEtcd(bundle *flow.Bundle) {
	bundle.Spec.DriftDetection = flow.OperationOnlyOnChange()
	bundle.Spec.HealthChecks = []resourcesv1alpha1.HealthCheck{etcd.Health()}
}

// adjustAPIServer makes the API server count as ready as soon as it answers, not only after it has been available for some time.
func adjustAPIServer(bundle *flow.Bundle) {
	bundle.Spec.HealthChecks = []resourcesv1alpha1.HealthCheck{kubeapiserver.Health()}
}

// join joins the texts that are not empty.
func join(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), "; ")
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
