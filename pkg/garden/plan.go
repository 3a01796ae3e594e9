package garden

import (
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/etcd"
	"github.com/trellis-k8s/trellis/pkg/component/gardenerprograms"
	"github.com/trellis-k8s/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-k8s/trellis/pkg/component/kubecontrollermanager"
	"github.com/trellis-k8s/trellis/pkg/component/resourcemanager"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/flow/table"
	"github.com/trellis-k8s/trellis/pkg/inventory"
	"github.com/trellis-k8s/trellis/pkg/requeue"
)

// The names of the bundles and their ManagedResources. Those that a seed has, too, have the same names there, so that a seed and a garden in one
// cluster can hand them over. Bundles in [Inputs.inVirtual] contain objects of the virtual garden.
const (
	bundleNamespace       = "garden-namespace"
	bundleManagedKinds    = "crds-managedresources"
	bundleExtensionKinds  = "garden-crds-extensions"
	bundleEtcdKinds       = "crds-etcd"
	bundleAutoscalerKinds = "crds-vpa"
	bundleManager         = inventory.ResourceManager
	bundleSystem          = "garden-system"
	bundleAutoscaler      = "vpa"
	bundleEtcdOperator    = "etcd-druid"

	bundleServerService     = prefix + "kube-apiserver-service"
	bundleEtcdMain          = prefix + "etcd-main"
	bundleEtcdEvents        = prefix + "etcd-events"
	bundleServer            = prefix + kubeapiserver.Name
	bundleServerAutoscaler  = prefix + "kube-apiserver-scaling"
	bundleVirtualManager    = prefix + "gardener-resource-manager"
	bundleAccess            = prefix + "access"
	bundleControllerManager = prefix + kubecontrollermanager.Name

	bundleManagerRights           = "shoot-core-gardener-resource-manager"
	bundleVirtualSystem           = "garden-system-virtual"
	bundleControllerManagerRights = "shoot-core-kube-controller-manager"
	bundleOperatorAccess          = "shoot-core-gardeneraccess"
	bundleInfo                    = "gardener-info"

	suffixRuntime, suffixVirtual, suffixRights = "-runtime", "-virtual", "-rights"
)

// programs are the programs of the garden that need its API server.
var programs = []gardenerprograms.Program{gardenerprograms.AdmissionController, gardenerprograms.ControllerManager, gardenerprograms.Scheduler}

// runtimeOf and virtualOf return the bundles of a program in the runtime cluster and in the virtual garden.
func runtimeOf(program gardenerprograms.Program) string { return program.Name() + suffixRuntime }
func virtualOf(program gardenerprograms.Program) string { return program.Name() + suffixVirtual }

var (
	bundleAPI          = runtimeOf(gardenerprograms.APIServer)
	bundleAPIInVirtual = virtualOf(gardenerprograms.APIServer)
	// bundleAPIRights has the rights with which the API server starts. So it must not wait for the API server, as its registration does.
	bundleAPIRights = gardenerprograms.APIServer.Name() + suffixRights
)

// contents returns the table of contents of a Garden: all its parts in the order in which they start.
func (in Inputs) contents() table.Table {
	parts := slices.Concat(in.runtime(), in.exposureParts(), in.backupParts(), in.controlPlane(), in.inVirtual(), in.programs(), in.discoveryParts(), in.ingressParts(), in.recordParts())
	for i := range parts {
		parts[i].Unknown = table.Join(parts[i].Unknown, in.notHandedOver(parts[i].Name))
	}
	return table.Table{
		Parts: parts, Key: in.key, Prepare: in.prepare, Emitted: in.Emitted, Now: in.Now,
	}
}

// runtime returns the parts that prepare the runtime cluster.
func (in Inputs) runtime() []table.Part {
	unknown := in.unknownSecrets()
	return []table.Part{
		{Name: bundleNamespace, Objects: in.namespace, Adjust: keepObjects, DeletedAfter: []string{}},
		{Name: bundleManagedKinds, Objects: definitions(bundleManagedKinds), Adjust: keepObjects, DeletedAfter: []string{}},
		{
			Name: bundleExtensionKinds, Objects: definitions(bundleExtensionKinds), Adjust: keepObjects,
			DeletedAfter: append(in.recordNames(), bundleBackupBucket),
		},
		{Name: bundleEtcdKinds, Objects: definitions(bundleEtcdKinds), Adjust: keepObjects, DeletedAfter: []string{bundleEtcdOperator}},
		{
			Name: bundleAutoscalerKinds, Absent: in.withoutAutoscalingKinds(), Objects: definitions(bundleAutoscalerKinds), Adjust: keepObjects,
			DeletedAfter: []string{},
		},
		{
			Name: bundleManager, Objects: in.manager, Unknown: unknown, Adjust: appliesItself, Contains: true,
			Needs: []table.Need{table.Healthy(bundleNamespace, bundleManagedKinds, bundleExtensionKinds, bundleEtcdKinds, bundleAutoscalerKinds)},
		},
		{Name: bundleSystem, Objects: in.system, Needs: []table.Need{table.RolledOut(bundleManager)}},
		{
			Name: bundleAutoscaler, Absent: in.withoutAutoscaler(), Removed: true, Objects: in.autoscaler, Unknown: unknown,
			Needs: []table.Need{table.Applied(bundleSystem, bundleAutoscalerKinds)},
		},
		{Name: bundleEtcdOperator, Objects: in.etcdOperator, Unknown: unknown, Needs: []table.Need{table.Applied(bundleSystem, bundleEtcdKinds)}},
	}
}

// controlPlane returns the parts of the control plane of the virtual garden, which run in the runtime cluster.
func (in Inputs) controlPlane() []table.Part {
	unknown, users := in.unknownSecrets(), in.runtimePrograms()
	return []table.Part{
		{
			Name: bundleServerService, Objects: in.serverService, Unknown: in.unknownExposure(), Needs: []table.Need{table.Applied(bundleSystem)},
			DeletedAfter: append([]string{bundleServer}, in.recordNames()...), Adjust: in.recordRoutes,
		},
		in.etcdPart(bundleEtcdMain, etcd.RoleMain, bundleServer, bundleAPI),
		in.etcdPart(bundleEtcdEvents, etcd.RoleEvents, bundleServer),
		{
			Name: bundleServer, Objects: in.apiServer, Unknown: table.Join(unknown, in.unknownFiles()),
			Needs:        []table.Need{in.ready(bundleEtcdMain, bundleEtcdEvents), table.Applied(bundleServerService)},
			DeletedAfter: slices.Concat([]string{bundleServerAutoscaler, bundleVirtualManager, bundleControllerManager}, users), Adjust: adjustServer,
		},
		{Name: bundleServerAutoscaler, Objects: in.serverAutoscaler, Needs: []table.Need{table.Applied(bundleServer)}},
		{
			Name: bundleVirtualManager, Objects: in.virtualManager,
			Unknown: table.Join(unknown, in.unknownToken(bundleVirtualManager, resourcemanager.Account)),
			Needs:   []table.Need{in.ready(bundleServer)}, DeletedAfter: slices.Concat([]string{bundleControllerManager}, users, in.virtualNames()),
		},
		{
			Name: bundleAccess, Objects: in.accessSecrets, Unknown: unknown, Needs: []table.Need{table.Applied(bundleSystem)},
			DeletedAfter: append([]string{bundleControllerManager}, users...),
		},
		{
			Name: bundleControllerManager, Objects: in.controllerManager,
			Unknown:      table.Join(unknown, in.unknownToken(bundleControllerManager, kubecontrollermanager.Name)),
			Needs:        []table.Need{table.Healthy(bundleVirtualManager), table.RolledOut(bundleServer)},
			DeletedAfter: slices.Concat(users, in.virtualPrograms()),
		},
	}
}

// etcdPart returns the part of an etcd, which stops after others.
func (in Inputs) etcdPart(name string, role etcd.Role, after ...string) table.Part {
	needs := []table.Need{table.Healthy(bundleEtcdOperator)}
	if in.backup(role) != nil {
		needs = append(needs, table.Healthy(bundleBackupEntry)) // whose Secret with credentials the members mount
	}
	return table.Part{
		Name: name, Objects: in.etcd(role), Unknown: in.unknownSecrets(), Needs: needs,
		DeletedAfter: after, Confirmed: true, Adjust: adjustEtcd,
	}
}

// inVirtual returns the parts in the virtual garden that do not belong to one of its programs.
func (in Inputs) inVirtual() []table.Part {
	needs := []table.Need{table.Applied(bundleVirtualManager)}
	return []table.Part{
		{Name: bundleManagerRights, Target: table.Shoot, Objects: in.managerRights, Needs: needs, Adjust: keepObjects},
		{Name: bundleVirtualSystem, Target: table.Shoot, Objects: in.virtualSystem, Needs: needs, DeletedAfter: append(in.virtualPrograms(), bundleInfo)},
		{Name: bundleControllerManagerRights, Target: table.Shoot, Objects: in.controllerManagerRights, Needs: needs},
		{Name: bundleOperatorAccess, Target: table.Shoot, Objects: in.operatorAccess, Needs: needs, DeletedAfter: in.virtualPrograms()},
		{Name: bundleInfo, Target: table.Shoot, Objects: in.info, Unknown: in.unknownSecrets(), Needs: []table.Need{table.Applied(bundleVirtualSystem)}},
	}
}

// programs returns the parts of the programs of the garden. The API server comes first, because it serves the kinds that the others watch.
func (in Inputs) programs() []table.Part {
	unknown := in.unknownSecrets()
	parts := []table.Part{
		{
			Name: bundleAPIRights, Target: table.Shoot, Objects: in.virtualProgram(gardenerprograms.APIServer), Unknown: unknown,
			Needs: []table.Need{table.Applied(bundleVirtualManager, bundleVirtualSystem)}, DeletedAfter: []string{bundleAPI},
		},
		{
			Name: bundleAPI, Objects: in.runtimeProgram(gardenerprograms.APIServer),
			Unknown: table.Join(unknown, in.unknownFiles(), in.unknownToken(bundleAPI, gardenerprograms.APIServer.Name())),
			Needs:   []table.Need{in.ready(bundleEtcdMain, bundleServer, bundleVirtualManager), table.Applied(bundleAPIRights)},
			// The registration goes first: requests for its kinds would otherwise fail until it is gone, and namespaces could not be deleted.
			DeletedAfter: []string{bundleAPIInVirtual},
		},
		{
			Name: bundleAPIInVirtual, Target: table.Shoot, Objects: in.registration,
			Unknown: table.Join(unknown, in.unknownAPIServerAddress()), Needs: []table.Need{table.Applied(bundleVirtualManager), in.ready(bundleAPI)},
			DeletedAfter: in.runtimeClients(),
		},
	}
	for _, program := range programs {
		parts = append(parts, table.Part{
			Name: virtualOf(program), Target: table.Shoot, Objects: in.virtualProgram(program), Unknown: unknown,
			Needs: []table.Need{table.Applied(bundleVirtualSystem)}, DeletedAfter: []string{},
		}, table.Part{
			Name: runtimeOf(program), Objects: in.runtimeProgram(program),
			Unknown: table.Join(unknown, in.unknownToken(runtimeOf(program), program.Name())),
			Needs:   []table.Need{in.ready(bundleAPIInVirtual), table.Applied(virtualOf(program))}, DeletedAfter: []string{},
		})
	}
	return parts
}

// runtimeClients are the bundles of the programs that need the API of the garden, and runtimePrograms also that of the API itself.
func (in Inputs) runtimeClients() []string {
	var names []string
	if in.discovery() != nil {
		names = append(names, bundleDiscovery)
	}
	for _, program := range programs {
		names = append(names, runtimeOf(program))
	}
	return names
}

func (in Inputs) runtimePrograms() []string { return append(in.runtimeClients(), bundleAPI) }

// virtualPrograms are the bundles of the programs in the virtual garden, and virtualNames are all bundles there.
func (in Inputs) virtualPrograms() []string {
	names := []string{bundleAPIInVirtual, bundleAPIRights}
	if in.discovery() != nil {
		names = append(names, bundleDiscoveryInVirtual)
	}
	for _, program := range programs {
		names = append(names, virtualOf(program))
	}
	return names
}

func (in Inputs) virtualNames() []string {
	return append(in.virtualPrograms(), bundleManagerRights, bundleVirtualSystem, bundleControllerManagerRights, bundleOperatorAccess, bundleInfo)
}

// Plan is the flow of a Garden. It is a pure function of its inputs.
func Plan(in Inputs) (flow.Plan, error) {
	var err error
	plan := flow.Plan{Next: in.SecretsRenewed}
	switch fields := in.refused(); {
	case in.Deleting:
		plan = deletion(in)
	case len(fields) > 0:
		plan.Waits = append(plan.Waits, flow.Wait{
			Name: "garden-valid", Reason: "this version of the operator does not support " + strings.Join(fields, ", ") + ": remove it", Holds: in.Emitted,
			Deadline: in.Now, Code: corev1beta1.ErrorConfigurationProblem,
		})
	default:
		in.contents().AddAll(&plan)
		in.addWaits(&plan)
		plan.Next = requeue.Earlier(plan.Next, in.routes().Ends())
		plan.Tasks = in.due()
	}
	plan.Inputs, err = flow.InputsDigest(in.Garden.Spec, in.Garden.Annotations[constants.AnnotationGardenExposure], in.Config, in.Deleting, in.KubernetesVersion)
	return plan, err
}

// addWaits adds the waits that concern all bundles.
func (in Inputs) addWaits(plan *flow.Plan) {
	if in.autoscaling() || in.emitted(bundleAutoscalerKinds) || in.HasVerticalPodAutoscaler == nil || *in.HasVerticalPodAutoscaler {
		return
	}
	plan.Waits = append(plan.Waits, flow.Wait{
		Name: "vertical-pod-autoscaler", HoldsAll: true, Deadline: in.Now, Code: corev1beta1.ErrorRetryableConfigurationProblem,
		Reason: "spec.runtimeCluster.settings.verticalPodAutoscaler.enabled is false, and the runtime cluster does not know the kind " +
			"VerticalPodAutoscaler: install a Vertical Pod Autoscaler, or enable the setting",
	})
}

// prepare sets what all bundles of a cluster have.
func (in Inputs) prepare(target table.Target, bundle *flow.Bundle) {
	if target == table.Shoot {
		bundle.Labels = map[string]string{"origin": "gardener", constants.LabelConditionType: "VirtualComponentsHealthy"}
		return
	}
	in.keepInZones(bundle)
	bundle.Spec.Class = ptr.To(classRuntime)
	bundle.Labels = map[string]string{constants.LabelGardenRole: constants.RoleSeedSystemComponent}
	if strings.HasPrefix(bundle.Name, prefix) && bundle.Name != bundleGateway || strings.HasSuffix(bundle.Name, suffixRuntime) {
		bundle.Labels[constants.LabelConditionType] = "VirtualComponentsHealthy"
	}
}

// keepObjects keeps the objects of a bundle if its ManagedResource is deleted.
func keepObjects(bundle *flow.Bundle) { bundle.Spec.KeepObjects = ptr.To(true) }

func appliesItself(bundle *flow.Bundle) { bundle.AppliesItself = true }

// adjustEtcd makes each change of the bundle trigger the etcd operator, and only changes.
func adjustEtcd(bundle *flow.Bundle) {
	bundle.Spec.DriftDetection = flow.OperationOnlyOnChange()
	bundle.Spec.HealthChecks = []resourcesv1alpha1.HealthCheck{etcd.Health()}
}

// adjustServer makes the API server count as ready as soon as it answers, not only after it has been available for some time.
func adjustServer(bundle *flow.Bundle) {
	bundle.Spec.HealthChecks = []resourcesv1alpha1.HealthCheck{kubeapiserver.Health()}
}

// unknownToken reports that the token with which a program accesses the virtual garden is missing.
func (in Inputs) unknownToken(bundle, account string) string {
	secret := constants.PrefixShootAccess + account
	if in.hasToken(secret) {
		return ""
	}
	return "Secret " + in.Namespace + "/" + secret + " has no valid token for " + bundle
}

func (in Inputs) unknownAPIServerAddress() string {
	if in.APIServerAddress == "" {
		return "Service " + in.Namespace + "/" + gardenerprograms.APIServer.Name() + " has no address yet"
	}
	return ""
}

func (in Inputs) withoutAutoscaler() string {
	if in.autoscaling() {
		return ""
	}
	return "spec.runtimeCluster.settings.verticalPodAutoscaler.enabled is false"
}

// withoutAutoscalingKinds returns why the flow does not define the kinds of the Vertical Pod Autoscaler. Once defined they are kept, because other
// objects of these kinds exist.
func (in Inputs) withoutAutoscalingKinds() string {
	if in.emitted(bundleAutoscalerKinds) {
		return ""
	}
	return in.withoutAutoscaler()
}
