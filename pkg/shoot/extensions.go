package shoot

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/flow/table"
)

const (
	// prefixExtension is the prefix of the names of bundles with one Extension each. Extensions use "extension-" for their
	// own ManagedResources.
	prefixExtension = "shoot-extension-"
	// extensionTimeout is how long an operation of an extension may take if its registration does not define a limit.
	extensionTimeout = 3 * time.Minute
)

// Choices of the bundle of an Extension: the generation of the Shoot for which its last operation was requested, and the
// time of the request.
const (
	choiceAskedFor = "asked-for"
	choiceAskedAt  = "asked-at"
	// choiceGeneration of the bundle of the Cluster is the generation of the Shoot that the Cluster contains.
	choiceGeneration = "generation"
)

// extension is an Extension of a Shoot, with the settings of its registration.
type extension struct {
	Type   string
	Config *runtime.RawExtension
	// Registered is set if a registration has primary responsibility for the type.
	Registered bool
	// Reconciled and Deleted are the times of these operations, relative to the API server.
	Reconciled, Deleted corev1beta1.ControllerResourceLifecycleStrategy
	// Limit is how long an operation may take.
	Limit time.Duration
}

// before reports whether the extension is reconciled before the API server is started. Without workers, an extension that
// is reconciled after the workers is reconciled after the API server.
func (e extension) before() bool { return e.Reconciled == corev1beta1.BeforeKubeAPIServer }

// outlives returns the parts that are deleted before the extension, if the whole Shoot is. An extension that is removed
// from a Shoot that remains waits for nothing.
func (e extension) outlives() []string {
	if e.Deleted == corev1beta1.AfterKubeAPIServer {
		return []string{bundleAPIServer}
	}
	return nil
}

// extensionsOf returns the extensions of a Shoot, sorted by type: those that it lists, and those that are enabled for all
// Shoots and that it does not disable. refused describes the listed extensions that are not supported, with their paths.
func extensionsOf(shoot *corev1beta1.Shoot, registrations []corev1beta1.ControllerRegistration) (wanted []extension, refused []string) {
	registered, workerless := registeredExtensions(registrations), len(shoot.Spec.Provider.Workers) == 0
	named := map[string]bool{}
	for i, each := range shoot.Spec.Extensions {
		named[each.Type] = true
		resource, found := registered[each.Type]
		switch why := unsupported(resource, workerless); {
		case ptr.Deref(each.Disabled, false):
		case found && why != "":
			refused = append(refused, fmt.Sprintf("spec.extensions[%d]: the extension %s %s", i, each.Type, why))
		default:
			wanted = append(wanted, extensionFrom(each, resource, found))
		}
	}
	for kind, resource := range registered {
		if !named[kind] && slices.Contains(resource.AutoEnable, corev1beta1.ClusterTypeShoot) && unsupported(resource, workerless) == "" {
			wanted = append(wanted, extensionFrom(corev1beta1.Extension{Type: kind}, resource, true))
		}
	}
	slices.SortFunc(wanted, func(a, b extension) int { return cmp.Compare(a.Type, b.Type) })
	return wanted, refused
}

// registeredExtensions returns the resources of kind Extension in the primary registrations, by type. The oldest
// registration takes precedence.
func registeredExtensions(registrations []corev1beta1.ControllerRegistration) map[string]corev1beta1.ControllerResource {
	ordered := slices.SortedFunc(slices.Values(registrations), func(a, b corev1beta1.ControllerRegistration) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	registered := map[string]corev1beta1.ControllerResource{}
	for _, registration := range ordered {
		for _, resource := range registration.Spec.Resources {
			_, known := registered[resource.Type]
			if !known && resource.Kind == corev1beta1.KindExtension && ptr.Deref(resource.Primary, true) {
				registered[resource.Type] = resource
			}
		}
	}
	return registered
}

// unsupported returns the reason why a Shoot cannot have an extension, or an empty string.
func unsupported(resource corev1beta1.ControllerResource, workerless bool) string {
	switch {
	case len(resource.ClusterCompatibility) > 0 && !slices.Contains(resource.ClusterCompatibility, corev1beta1.ClusterTypeShoot):
		return "does not support Shoots, according to clusterCompatibility of its ControllerRegistration"
	case workerless && !ptr.Deref(resource.WorkerlessSupported, false):
		return "does not support Shoots without workers, according to workerlessSupported of its ControllerRegistration"
	}
	return ""
}

// extensionFrom combines an extension of a Shoot with the settings of its registration.
func extensionFrom(of corev1beta1.Extension, resource corev1beta1.ControllerResource, registered bool) extension {
	lifecycle := ptr.Deref(resource.Lifecycle, corev1beta1.ControllerResourceLifecycle{})
	return extension{
		Type: of.Type, Config: of.ProviderConfig, Registered: registered,
		Reconciled: ptr.Deref(
			lifecycle.Reconcile, corev1beta1.AfterKubeAPIServer,
		), Deleted: ptr.Deref(lifecycle.Delete, corev1beta1.BeforeKubeAPIServer),
		Limit: ptr.Deref(resource.ReconcileTimeout, metav1.Duration{Duration: extensionTimeout}).Duration,
	}
}

// wantedExtensions returns the extensions of the Shoot.
func (in Inputs) wantedExtensions() []extension {
	wanted, _ := extensionsOf(in.Shoot, in.Registrations)
	return wanted
}

// refusedExtensions describes the listed extensions that are not supported.
func (in Inputs) refusedExtensions() []string {
	_, refused := extensionsOf(in.Shoot, in.Registrations)
	return refused
}

// extensions returns the types of the Shoot's Extensions, sorted.
func (in Inputs) extensions() []string {
	var types []string
	for _, each := range in.wantedExtensions() {
		types = append(types, each.Type)
	}
	return types
}

// extensionNames returns the bundles of the extensions that are reconciled before the API server, or of all others. No
// part depends on an extension without a registration, or on any extension while the Shoot is being deleted.
func (in Inputs) extensionNames(before bool) []string {
	var names []string
	for _, each := range in.wantedExtensions() {
		if each.Registered && !in.Deleting && each.before() == before {
			names = append(names, prefixExtension+each.Type)
		}
	}
	return names
}

// extensionParts returns a part for each extension of the Shoot, and one for each extension that it no longer has. While
// the Shoot hibernates, the order is reversed: extensions that are usually reconciled before the API server are
// reconciled after it has stopped, and the others before.
func (in Inputs) extensionParts() []table.Part {
	var parts []table.Part
	for _, each := range in.wantedExtensions() {
		first := table.Applied(bundleReferenced)
		part := table.Part{
			Name: prefixExtension + each.Type, Objects: in.extension(each), Unknown: in.heldForDeletion(), ReadsCluster: true,
			Needs: []table.Need{first, table.Applied(bundleAccess), table.Healthy(bundleResourceManager)}, NeedsAsleep: []table.Need{first},
			DeletedAfter: []string{}, Outlives: each.outlives(), Confirmed: true, Adjust: in.adjustExtension,
		}
		if in.hasWorkers() && each.Reconciled == corev1beta1.AfterWorker {
			part.Needs = append(part.Needs, table.Healthy(bundleWorker))
		}
		if each.before() {
			part.Needs, part.NeedsAsleep = []table.Need{first}, []table.Need{first, table.RolledOut(bundleAPIServer)}
		}
		parts = append(parts, part)
	}
	for _, name := range in.removedExtensions() {
		// While the shoot hibernates, the extension cannot delete its objects in the cluster.
		parts = append(parts, table.Part{
			Name: name, Absent: "the Shoot no longer has it", Removed: true, Unchanged: in.hibernated(), DeletedAfter: []string{}, Confirmed: true,
		})
	}
	return parts
}

// removedExtensions returns the bundles of extensions that the Shoot no longer has.
func (in Inputs) removedExtensions() []string {
	var names []string
	wanted := in.extensions()
	for _, key := range in.Emitted {
		kind, is := strings.CutPrefix(key.Name, prefixExtension)
		if is && key.Namespace == in.Namespace && !slices.Contains(wanted, kind) {
			names = append(names, key.Name)
		}
	}
	return names
}

// extensionBundles returns the bundles of the extensions that are deleted after the API server, or of all others. It is
// not known of an extension that the Shoot no longer has, which therefore is deleted before.
func (in Inputs) extensionBundles(late bool) []string {
	var names []string
	for _, each := range in.wantedExtensions() {
		if (each.Deleted == corev1beta1.AfterKubeAPIServer) == late {
			names = append(names, prefixExtension+each.Type)
		}
	}
	if late {
		return names
	}
	return append(names, in.removedExtensions()...)
}

// allExtensionBundles returns the bundles of all extensions: those that are deleted before the API server, and the others.
func (in Inputs) allExtensionBundles() []string {
	return slices.Concat(in.extensionBundles(false), in.extensionBundles(true))
}

// unknownCluster reports that the Cluster does not contain this generation of the Shoot yet. Extensions read the Shoot
// from the Cluster, so they and the programs that are ordered relative to them retain their revisions until then.
// ManagedResources cannot depend on the Cluster, as on the namespace.
func (in Inputs) unknownCluster() string {
	if in.Deleting || in.ClusterOf == in.generation() || !in.clusterIsRead() {
		return ""
	}
	return "the Cluster of this generation of the Shoot has not been applied yet"
}

// clusterIsRead reports whether extensions read the Cluster.
func (in Inputs) clusterIsRead() bool { return in.hasWorkers() || len(in.wantedExtensions()) > 0 }

// generation returns the generation of the Shoot as a string.
func (in Inputs) generation() string { return strconv.FormatInt(in.Shoot.Generation, 10) }

// adjustNamespace records the generation of the Shoot that the Cluster contains, if extensions read it.
func (in Inputs) adjustNamespace(bundle *flow.Bundle) {
	if in.clusterIsRead() {
		bundle.Choices = map[string]string{choiceGeneration: in.generation()}
	}
}

// heldForDeletion holds the objects of extensions while the Shoot is being deleted, until they are deleted themselves.
func (in Inputs) heldForDeletion() string {
	if in.Deleting {
		return "objects in the cluster are deleted first"
	}
	return ""
}

// extension returns the function for the object of an extension. Each generation of the Shoot triggers an operation.
func (in Inputs) extension(of extension) func() ([]client.Object, error) {
	return func() ([]client.Object, error) {
		if !of.Registered {
			return nil, fmt.Errorf("no ControllerRegistration is primarily responsible for Extension/%s: "+
				"create one, or remove the type from spec.extensions", of.Type)
		}
		object := &extensionsv1alpha1.Extension{
			ObjectMeta: metav1.ObjectMeta{Namespace: in.Namespace, Name: of.Type},
			Spec:       extensionsv1alpha1.ExtensionSpec{DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: of.Type, ProviderConfig: of.Config}},
		}
		flow.AskExtension(object, constants.OperationReconcile, in.Asked)
		return []client.Object{object}, nil
	}
}

// adjustExtension makes each change of the bundle trigger the extension, and its health depend on the result.
func (in Inputs) adjustExtension(bundle *flow.Bundle) {
	flow.ForExtension(corev1beta1.KindExtension)(bundle)
	bundle.Choices = map[string]string{
		choiceAskedFor: in.generation(), choiceAskedAt: in.Asked.UTC().Format(time.RFC3339Nano),
	}
}

// Unfinished is an operation of an extension in progress: its start, and whether it is a deletion.
type Unfinished struct {
	Since    time.Time
	Deletion bool
}

// addLimits adds a wait for each operation of an extension in progress. It holds no bundle. After its deadline, the Shoot reports an error.
func (in Inputs) addLimits(plan *flow.Plan) {
	last := in.Shoot.Status.LastOperation
	if last == nil || last.State == corev1beta1.LastOperationStateSucceeded {
		return // conditions report operations that extensions start themselves
	}
	limits := map[string]time.Duration{bundleInternalRecord: recordTimeout, bundleExternalRecord: recordTimeout, bundleIngressRecord: recordTimeout}
	maps.Copy(limits, nodeLimits())
	for _, each := range in.wantedExtensions() {
		limits[prefixExtension+each.Type] = each.Limit
	}
	for _, name := range slices.Sorted(maps.Keys(in.Unfinished)) {
		what, act := strings.TrimPrefix(name, prefixRecord)+" DNSRecord", "operation"
		if kind, is := strings.CutPrefix(name, prefixExtension); is {
			what = "extension " + kind
		}
		if of, is := strings.CutPrefix(name, prefixNodes); is {
			what = "extension for " + of
		}
		unfinished, limit := in.Unfinished[name], cmp.Or(limits[name], extensionTimeout)
		switch {
		case unfinished.Deletion:
			act = "deletion"
		case in.Deleting:
			continue // earlier operations no longer matter
		}
		plan.Waits = append(plan.Waits, flow.Wait{
			Name: name, Reason: fmt.Sprintf(
				"the %s has not finished its %s, which may take %s", what, act, limit,
			), Deadline: unfinished.Since.Add(limit),
		})
	}
}
